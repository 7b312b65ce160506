"""NeuralBench's default schedule on any set, the simulated ones too, which carry a faster one of their own.

Command: python -m jbench.run --task=bci --model=eegnet --config=configs/published.py
Minutes: one on 2 cores with prepared sets. Measured (balanced accuracy, seeds 33-35): p3 65.9 +- 7.2 %, the five
other simulated sets at chance, because the schedule is made for longer runs than 40 epochs of a thousand windows.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {'recipe.lr': 1e-4, 'recipe.max_epochs': 40, 'recipe.patience': 5}
