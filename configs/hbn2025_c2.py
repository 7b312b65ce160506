"""The start kit's recipe of challenge 2 (EEG Challenge 2025), EEGNeX, on the competition's copies at 100 Hz.

Command: python -m jbench.run --task=challenge2025/externalizing --model=eegnex --config=configs/hbn2025_c2.py
Of the twenty people of each release: --task=challenge2025/externalizing/Shirazi2024HbnL100Mini

As in the kit: the mean absolute error, a rate of 0.002, batches of 128, one epoch.
Otherwise than there: AdamW in place of Adamax; the two seconds of a window are drawn once, as the scorer draws those
that it scores (the kit draws them anew each time); externalizing is learnt centred and scaled, from the contrast change
task alone. Nobody has run it on the recordings yet.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {
        'recipe.loss': 'absolute_error',
        'recipe.lr': 2e-3,
        'recipe.weight_decay': 0.0,
        'recipe.batch_size': 128,
        'recipe.max_epochs': 1,
        'recipe.warmup': 0.0,
        'recipe.start_div': 1.0,
        'recipe.end_div': 1.0,  # the rate stays
        'recipe.grad_clip': 1e9,  # none in the kit
    }
