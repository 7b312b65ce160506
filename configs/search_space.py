"""A space to search: how a network learns P3.

Command: python -m jbench.run --task=p3 --model=eegnet --stage=search --search=configs/search_space.py

A list has the choices of a field; a range has `low` and `high`, and `log` (equal weight in each decade) or `step`.
See docs/finders.md.
"""


def get() -> dict[str, object]:
    """What each field may be."""
    return {
        'recipe.lr': {'low': 1e-4, 'high': 3e-2, 'log': True},
        'recipe.weight_decay': [0.0, 0.01, 0.05, 0.2],
        'recipe.batch_size': [32, 64, 128],
    }
