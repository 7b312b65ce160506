"""How a network learns, as plain values."""

from __future__ import annotations

import typing
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network learns (training.md): AdamW, one-cycle with cycling beta1, clipping, early stopping."""

    lr: float = 1e-4  # highest learning rate of the schedule
    optimizer: typing.Literal['adamw', 'adamax'] = 'adamw'  # decay is decoupled in both
    # of the rate: one_cycle, with the beta1 of AdamW; cosine, a step an epoch, 0 in the last one; it stays as it is
    schedule: typing.Literal['one_cycle', 'cosine', 'constant'] = 'one_cycle'
    weight_decay: float = 0.05
    batch_size: int = 64
    microbatch: int = 0  # windows of a batch that are computed at once, for less memory; 0: as many as suit the network
    precision: typing.Literal['float32', 'bfloat16'] = 'float32'  # of a network; what is trained stays float32
    max_epochs: int = 40
    least_steps: int = 0  # the schedule is no shorter, in whole epochs, and nothing stops it before
    patience: int = 5  # epochs without a strictly better monitor
    patience_steps: int = 0  # and at least so many steps without one
    min_delta: float = 0.0  # a monitor is better where it is so by more than this
    grad_clip: float = 1.0  # global L2 norm
    label_smoothing: float = 0.1
    class_weights: bool = False
    loss: typing.Literal[
        'cross_entropy',
        'binary_cross_entropy',
        'squared_error',
        'absolute_error',
        'clip',
        'clip_distinct',
        'ctc',
        'info_nce',
        'next_window',
        'reconstruction',
    ] = 'cross_entropy'
    loss_scale: float = 1.0
    temperature: float = 0.1  # of info_nce and next_window: what similarities are divided by
    # drawn with replacement: classes | bins of y | several people at several moments | windows that follow one another
    sampler: typing.Literal['shuffle', 'balanced', 'bins', 'moments', 'stretches'] = 'shuffle'
    # of reconstruction: share of the patches in time that are hidden, their length (s), share of whole channels
    hide_times: float = 0.4
    hide_patch: float = 0.2
    hide_channels: float = 0.2
    warmup: float = 0.1  # of one_cycle: share in which the rate rises
    start_div: float = 25.0  # lr / start_div at the first step
    end_div: float = 1e4  # lr / start_div / end_div at the last step
    # (pattern of the path of a parameter, factor of its rate), the first that fits; 0: it stays as it is
    trainable: tuple[tuple[str, float], ...] = ()
    # what of a pretrained encoder learns: all of it; a head on features that stay as they are (linear, a hidden layer,
    # closed form); its last layers; attention alone; a few directions of its attention; first the head, then all
    adaptation: typing.Literal[
        'full', 'probe', 'mlp_probe', 'ridge_probe', 'last_k', 'attention', 'lora', 'two_stage'
    ] = 'full'
    layer: str = 'penultimate'  # of an encoder: the feature that its head reads
    aggregation: typing.Literal['flatten', 'mean', 'first', 'quarters'] = 'flatten'  # of the tokens of that feature
    # in place of an encoder's own: see models/foundation/probes.py; '': that of the adaptation
    head: typing.Literal['', 'linear', 'mlp', 'mlp_512', 'mlp_800_200'] = ''
    last_k: int = 1  # layers that learn, with what follows them
    lora_rank: int = 8
    lora_alpha: float = 16.0
    lora_targets: tuple[str, ...] = ()  # patterns of the names of matrices; (): those of attention
    lora_dropout: float = 0.0
    layer_decay: float = 1.0  # factor of the rate from each layer to the one before it
    head_epochs: int = 5  # of two_stage, before the schedule of all begins
    rotation: int = 0  # channels turn by up to so many places around a wrist, drawn for each training batch
    few_shot: int = 0  # training windows of each class and subject; 0: all
    few_shot_draw: int = 0  # number of their draw; 0: each seed has one of its own
    mask_channels: float = 0.0  # share of the channels of each test window that fail (are zero)
    # which network is tested: that of the epoch that validation chose; or one that then learns from training and
    # validation windows together, for as many epochs (for submissions: no validation score is left)
    final: typing.Literal['chosen', 'all'] = 'chosen'
    # yes: one encoder learns the tasks of a request together, with a head for each (train/together.py); each step is of
    # one task, drawn in proportion to its training windows ** (1 / task_temperature): 1 as they are, more: evenly
    together: typing.Literal['no', 'yes'] = 'no'
    task_temperature: float = 1.0
    published: bool = False  # the reference's choices where ours differ: first batch statistics, fits on train + valid

    @property
    def frames(self) -> bool:
        """Whether networks answer each frame of a window."""
        return self.loss == 'ctc'

    @property
    def own_head(self) -> bool:
        """Whether an encoder keeps its own head."""
        plain = (self.head, self.layer, self.aggregation) == (DEFAULT.head, DEFAULT.layer, DEFAULT.aggregation)
        return plain and self.adaptation not in PROBES

    @property
    def adapts(self) -> bool:
        """Whether it says what of an encoder learns, or at which rates, or another head than its own."""
        return self.adaptation != 'full' or self.layer_decay != 1 or not self.own_head


def seeds_draw(recipe: Recipe) -> bool:
    """Whether each seed learns from training windows of its own."""
    return bool(recipe.few_shot) and not recipe.few_shot_draw


TEMPERED = ('info_nce', 'next_window')  # losses by recipe.temperature; cross_entropy is by recipe.label_smoothing
TOGETHER = ('clip', 'clip_distinct', *TEMPERED)  # losses by which rows of a batch are answers of each other
LORA = ('lora_rank', 'lora_alpha', 'lora_targets', 'lora_dropout')  # fields of that adaptation
PROBES = ('probe', 'mlp_probe', 'ridge_probe')  # adaptations that leave the encoder as it is
DEFAULT = Recipe()

_FIELDS = ('adaptation', 'layer', 'aggregation', 'head')
# NeuralBench's names of variants -> what these fields are: those of defaults/downstream_wrappers.yaml (BENDR's `c_out`
# is `tokens`, its `z` is `vectors`), and the last four as its pull request 230 is said to call them
VARIANTS = {
    name: dict(zip(_FIELDS, values, strict=True))
    for name, values in {
        'identity_freeze': ('probe', 'penultimate', 'flatten', ''),
        'identity_finetune': ('full', 'penultimate', 'flatten', ''),
        'cls_linear_finetune': ('full', 'tokens', 'first', ''),
        'avg_linear_finetune': ('full', 'tokens', 'mean', ''),
        'conv_linear_finetune': ('full', 'vectors', 'quarters', ''),
        'flatten_linear_freeze': ('probe', 'tokens', 'flatten', ''),
        'cls_linear_freeze': ('probe', 'tokens', 'first', ''),
        'avg_linear_freeze': ('probe', 'tokens', 'mean', ''),
        'conv_linear_freeze': ('probe', 'vectors', 'quarters', ''),
        'cls_mlp_freeze': ('mlp_probe', 'tokens', 'first', 'mlp_512'),
        'avg_mlp_freeze': ('mlp_probe', 'tokens', 'mean', 'mlp_512'),
        'conv_mlp_freeze': ('mlp_probe', 'vectors', 'quarters', 'mlp_512'),
        'avg_linear_finetune_attention': ('attention', 'tokens', 'mean', ''),
        'flatten_mlp_finetune': ('full', 'tokens', 'flatten', 'mlp_800_200'),
        'linear_probe_flatten': ('probe', 'tokens', 'flatten', ''),
        'linear_probe_mean': ('probe', 'tokens', 'mean', ''),
        'finetune_flatten': ('full', 'tokens', 'flatten', ''),
        'finetune_mean': ('full', 'tokens', 'mean', ''),
    }.items()
}
