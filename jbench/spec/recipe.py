"""How a network learns, as plain values."""

from __future__ import annotations

import typing
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network learns (training.md): AdamW, one-cycle with cycling beta1, clipping, early stopping."""

    lr: float = 1e-4  # highest learning rate of the cycle
    weight_decay: float = 0.05
    batch_size: int = 64
    microbatch: int = 0  # windows of a batch that are computed at once, for less memory; 0: all
    precision: typing.Literal['float32', 'bfloat16'] = 'float32'  # of a network; what is trained stays float32
    max_epochs: int = 40
    least_steps: int = 0  # the schedule is no shorter, in whole epochs, and nothing stops it before
    patience: int = 5  # epochs without a strictly better monitor
    patience_steps: int = 0  # and at least so many steps without one
    grad_clip: float = 1.0  # global L2 norm
    label_smoothing: float = 0.1
    class_weights: bool = False
    loss: typing.Literal['cross_entropy', 'binary_cross_entropy', 'squared_error', 'clip', 'clip_distinct', 'ctc'] = (
        'cross_entropy'
    )
    loss_scale: float = 1.0
    sampler: typing.Literal['shuffle', 'balanced', 'bins'] = 'shuffle'  # drawn with replacement: classes | bins of y
    warmup: float = 0.1  # share of the cycle in which the rate rises
    start_div: float = 25.0  # lr / start_div at the first step
    end_div: float = 1e4  # lr / start_div / end_div at the last step
    # (pattern of the path of a parameter, factor of its rate), the first that fits; 0: it stays as it is
    trainable: tuple[tuple[str, float], ...] = ()
    # what of a pretrained encoder learns: all of it; a head on features that stay as they are (linear, a hidden layer,
    # closed form); its last layers; a few directions of its attention; first the head, then all
    adaptation: typing.Literal['full', 'probe', 'mlp_probe', 'ridge_probe', 'last_k', 'lora', 'two_stage'] = 'full'
    last_k: int = 1  # layers that learn, with what follows them
    lora_rank: int = 8
    lora_alpha: float = 16.0
    layer_decay: float = 1.0  # factor of the rate from each layer to the one before it
    head_epochs: int = 5  # of two_stage, before the schedule of all begins
    few_shot: int = 0  # training windows of each class and subject; 0: all
    mask_channels: float = 0.0  # share of the channels of each test window that fail (are zero)
    published: bool = False  # the reference's choices where ours differ: first batch statistics, fits on train + valid


PROBES = ('probe', 'mlp_probe', 'ridge_probe')  # adaptations that leave the encoder as it is
DEFAULT = Recipe()
