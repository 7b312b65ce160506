"""The start kit's recipe of challenge 1 (EEG Challenge 2025), EEGNeX, on the competition's copies at 100 Hz.

Command: python -m jbench.run --task=challenge2025/response_time --model=eegnex --config=configs/hbn2025_c1.py
Of the twenty people of each release: --task=challenge2025/response_time/Shirazi2024HbnL100Mini

As in the kit: AdamW, a rate of 1e-3 that falls by a cosine, weight decay 1e-5, batches of 128, at most 100 epochs,
patience 5. Otherwise than there: the epoch is chosen by people of the validation part (the kit chose it by its test
part, a fiftieth of the people), and R5 is tested by a network of the other releases (the kit learnt from 80 % of R5's
twenty); the beta1 of AdamW cycles; the reaction time is learnt centred and scaled. Nobody has
run it on the recordings yet.
"""


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {
        'recipe.lr': 1e-3,
        'recipe.weight_decay': 1e-5,
        'recipe.batch_size': 128,
        'recipe.max_epochs': 100,
        'recipe.patience': 5,
        'recipe.warmup': 0.0,
        'recipe.start_div': 1.0,
        'recipe.grad_clip': 1e9,  # none in the kit
    }
