"""The start kit's recipe of challenge 1 (EEG Challenge 2025), EEGNeX, on the competition's copies at 100 Hz.

Whole releases, then the twenty people of each:
Command: python -m jbench.run --task=challenge2025/response_time --model=eegnex --config=configs/hbn2025_c1.py
Command: python -m jbench.run --task=challenge2025/response_time/Shirazi2024HbnL100Mini --model=eegnex \
    --config=configs/hbn2025_c1.py

As in the kit: AdamW with betas 0.9 and 0.999, a rate of 1e-3 that falls by a cosine, a step an epoch, to 0 in the last
one of 100 (T_max is 99), weight decay 1e-5, squared error of seconds, batches of 128, patience 5, no clipping.
Otherwise than there: the epoch is chosen by people of the validation part (the kit chose it by its test part, a
fiftieth of the people); R5 is tested by a network of the other releases (the kit learnt from 80 % of R5's twenty);
microvolts in place of volts; the least gain of 1e-4 is one of the normalised error (the kit's is in seconds). Nobody
has run it on the recordings yet.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {
        'target.scaled': False,
        'recipe.optimizer': 'adamw',
        'recipe.schedule': 'cosine',
        'recipe.lr': 1e-3,
        'recipe.weight_decay': 1e-5,
        'recipe.batch_size': 128,
        'recipe.max_epochs': 100,
        'recipe.patience': 5,
        'recipe.min_delta': 1e-4,
        'recipe.grad_clip': 1e9,  # none in the kit
    }
