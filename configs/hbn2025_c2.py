"""The start kit's recipe of challenge 2 (EEG Challenge 2025), EEGNeX, on the competition's copies at 100 Hz.

Whole releases, then the twenty people of each:
Command: python -m jbench.run --task=challenge2025/externalizing --model=eegnex --config=configs/hbn2025_c2.py
Command: python -m jbench.run --task=challenge2025/externalizing/Shirazi2024HbnL100Mini --model=eegnex \
    --config=configs/hbn2025_c2.py

As in the kit: Adamax at 0.002, the mean absolute error, batches of 128, one epoch, no clipping.
Otherwise than there: the target is externalizing, which is scored (the kit learns the p factor); the two seconds of a
window are drawn once, as the scorer draws those that it scores (the kit draws them anew each time); R5 is tested by a
network of the other releases (the kit learns from R5's twenty, and tests nothing); microvolts in place of volts. Nobody
has run it on the recordings yet.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {
        'target.scaled': False,
        'recipe.optimizer': 'adamax',
        'recipe.schedule': 'constant',
        'recipe.loss': 'absolute_error',
        'recipe.lr': 2e-3,
        'recipe.weight_decay': 0.0,
        'recipe.batch_size': 128,
        'recipe.max_epochs': 1,
        'recipe.grad_clip': 1e9,  # none in the kit
    }
