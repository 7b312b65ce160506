"""NeuralBench's published schedule on any set, the simulated ones too, which carry a faster one of their own.

Command: python -m jbench.run --task=bci --model=eegnet --config=configs/published.py
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {'recipe.lr': 1e-4, 'recipe.max_epochs': 40, 'recipe.patience': 5}
