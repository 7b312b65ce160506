"""NeuralBench's default schedule on a simulated set too, in place of the faster one that the set carries.

Command: python -m jbench.run --task=cvep,ssvep --config=configs/default_schedule.py
Minutes: one on 2 cores with prepared sets. Measured (balanced accuracy, seeds 33-35): both at chance, because the
schedule is made for longer runs than 40 epochs of a thousand windows.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {'recipe.lr': 1e-4, 'recipe.max_epochs': 40, 'recipe.patience': 5}
