"""Values of a task that have the right type and no meaning, refused before anything is prepared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter

from jbench.spec import metrics
from jbench.spec.errors import RequestError, unknown
from jbench.spec.objectives import OBJECTIVES
from jbench.spec.overrides import paths
from jbench.spec.recipe import DEFAULT, LORA, PROBES, TEMPERED, TOGETHER, Recipe
from jbench.spec.task import PARADIGMS, TARGETS, ByGroup, Embedding, Predefined, SignalSpec, SplitSpec, Target, Task

TINY = 1e-9  # stands for 'above 0'
CLASSES = ('classes', 'state')  # kinds of which a window has one class
WEIGHTED = ('cross_entropy', 'binary_cross_entropy')  # losses that weigh classes
RANGES = (  # (path, least, greatest) of numbers that mean something
    ('window.duration', TINY, 86_400),
    ('window.stride', TINY, math.inf),
    ('window.last', TINY, math.inf),
    ('window.trim.longest', 0, math.inf),
    ('window.jitter.span', TINY, math.inf),
    ('window.jitter.step', TINY, math.inf),
    ('target.steps', 0, 1e6),
    ('target.answers', 1, 1e6),
    ('signal.sfreq', TINY, 100_000),
    ('signal.clamp', TINY, math.inf),
    ('signal.factor', TINY, math.inf),
    ('signal.crop.start', 0, math.inf),
    ('signal.crop.skip', 0, math.inf),
    ('signal.crop.longest', TINY, math.inf),
    ('split.valid', TINY, 1 - TINY),
    ('split.test', TINY, 1 - TINY),
    ('split.seed', 0, 2**32 - 1),
    ('split.n', 3, math.inf),
    ('split.gap', 0, math.inf),
    ('split.threshold', 0, 1),
    ('target.length', 1, math.inf),
    ('target.blank', 1, math.inf),
    ('recipe.lr', 0, math.inf),
    ('recipe.weight_decay', 0, math.inf),
    ('recipe.batch_size', 1, math.inf),
    ('recipe.microbatch', 0, math.inf),
    ('recipe.max_epochs', 1, math.inf),
    ('recipe.patience', 1, math.inf),
    ('recipe.least_steps', 0, 1e9),
    ('recipe.patience_steps', 0, 1e9),
    ('recipe.min_delta', 0, math.inf),
    ('recipe.grad_clip', TINY, math.inf),
    ('recipe.label_smoothing', 0, 1),
    ('recipe.loss_scale', TINY, math.inf),
    ('recipe.temperature', TINY, math.inf),
    ('recipe.hide_times', 0, 1 - TINY),
    ('recipe.hide_patch', TINY, math.inf),
    ('recipe.hide_channels', 0, 1 - TINY),
    ('recipe.warmup', 0, 1 - TINY),
    ('recipe.start_div', 1, math.inf),
    ('recipe.end_div', 1, math.inf),
    ('recipe.last_k', 1, 1e6),
    ('recipe.lora_rank', 1, 1e6),
    ('recipe.lora_alpha', TINY, math.inf),
    ('recipe.lora_dropout', 0, 1 - TINY),
    ('recipe.layer_decay', TINY, 1),
    ('recipe.head_epochs', 1, 1e9),
    ('recipe.rotation', 0, 1e6),
    ('recipe.few_shot', 0, 1e9),
    ('recipe.few_shot_draw', 0, 1e9),
    ('recipe.mask_channels', 0, 1 - TINY),
    ('recipe.task_temperature', TINY, math.inf),
)
LAYERED = ('full', 'last_k', 'two_stage')  # adaptations that train layers at a rate
FIELDS = {  # of a recipe -> adaptations that read it
    'last_k': ('last_k',),
    **dict.fromkeys(LORA, ('lora',)),
    'head_epochs': ('two_stage',),
    'layer_decay': LAYERED,
}
OF_LOSSES = {  # of a recipe -> losses that read it
    'temperature': TEMPERED,
    **dict.fromkeys(('hide_times', 'hide_patch', 'hide_channels'), ('reconstruction',)),
}
NO_FAILING = 'channels that fail would be zero in the signal that is to be put back, too'
UNCOUNTED = ('two_stage', 'ridge_probe')  # adaptations that no number of epochs repeats
HEADS = {
    'probe': ('',),
    'ridge_probe': ('',),
    'mlp_probe': ('', 'mlp_512', 'mlp_800_200'),
}  # of adaptations that say it


def check(task: Task) -> None:
    """Refuse values that have the right type and no meaning, before anything is prepared. Raises RequestError."""
    there = {*paths(task)}
    for path, low, high in RANGES:
        value = attrgetter(path)(task) if path in there else None
        if isinstance(value, int | float) and not low <= value <= high:
            least = 'above 0' if low == TINY else f'at least {low:g}'
            at_most = '' if high == math.inf else ' and below 1' if high < 1 else f' and at most {high:g}'
            raise RequestError(f'--set {path}: {value!r} must be {least}{at_most}')
    if any(f <= 0 for f in task.signal.notch):
        raise RequestError(f'--set signal.notch: {task.signal.notch!r} must be above 0')
    for pattern, factor in task.recipe.trainable:
        if not 0 <= factor < math.inf:
            raise RequestError(f'--set recipe.trainable: the factor of {pattern!r}, {factor!r}, must be at least 0')
    require_read([task.recipe], 'adaptation', FIELDS)
    _adaptation(task.recipe)
    _final(task.recipe, task.split)
    _together(task.recipe, task.split)
    if task.recipe.schedule == 'cosine' and task.recipe.least_steps:
        raise RequestError(
            f'--set recipe.least_steps: {task.recipe.least_steps!r} is unused with recipe.schedule=cosine, which '
            'counts epochs: set recipe.max_epochs'
        )
    if not isinstance(task.split, Predefined) and task.split.valid + task.split.test >= 1:
        raise RequestError(
            f'--set split.valid, split.test: {task.split.valid!r} and {task.split.test!r} leave no rest to train on'
        )
    if isinstance(task.split, ByGroup):
        _folds(task.split, task.target)
    for path in ('signal.band', 'signal.baseline', 'target.core', 'target.clip'):
        pair = attrgetter(path)(task) if path in there else None
        if pair is not None and pair[0] >= pair[1]:
            raise RequestError(f'--set {path}: {pair!r} must be two ascending numbers')
    _band(task)
    if task.paradigm not in PARADIGMS:
        raise unknown('paradigm', task.paradigm, PARADIGMS[1:])
    _fitting(task)
    _pretraining(task)


def require_read(recipes: Sequence[Recipe], by: str, fields: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse fields that only some values of another one, `by`, read, which no recipe has. Raises RequestError."""
    chosen = sorted({getattr(recipe, by) for recipe in recipes})
    for name, read_by in fields.items():
        changed = [value for r in recipes if (value := getattr(r, name)) != getattr(DEFAULT, name)]
        if changed and not {*chosen} & {*read_by}:
            raise RequestError(
                f'--set recipe.{name}: {changed[0]!r} is unused with recipe.{by}={" and ".join(chosen)}; it is for '
                f'{", ".join(read_by)}'
            )


def _final(recipe: Recipe, split: SplitSpec) -> None:
    """Refuse a training without validation of which nobody can say how long it goes on. Raises RequestError."""
    if recipe.final == 'chosen':
        return
    if recipe.adaptation in UNCOUNTED:
        why = f'recipe.adaptation={recipe.adaptation}, which has no single number of epochs'
    elif recipe.few_shot:
        why = 'recipe.few_shot, which counts training windows'
    elif isinstance(split, ByGroup) and split.folds:
        why = 'split.folds, which tests every fold; one of them can: --set split.fold=1/5'
    else:
        return
    raise RequestError(f'--set recipe.final={recipe.final}: not with {why}')


def _together(recipe: Recipe, split: SplitSpec) -> None:
    """Refuse what several tasks cannot learn together. Raises RequestError."""
    if recipe.together == 'no':
        if recipe.task_temperature != DEFAULT.task_temperature:
            raise RequestError('--set recipe.task_temperature: unused without recipe.together=yes')
        return
    if recipe.adaptation in (*UNCOUNTED, *PROBES):
        why = f'recipe.adaptation={recipe.adaptation}: the encoder would learn nothing, or at another time'
    elif recipe.final == 'all':
        why = 'recipe.final=all: each task has a number of epochs of its own'
    elif isinstance(split, ByGroup) and split.folds:
        why = 'split.folds; one of them can: --set split.fold=1/5'
    else:
        return
    raise RequestError(f'--set recipe.together=yes: not with {why}')


def _adaptation(recipe: Recipe) -> None:
    """Refuse what the adaptation says itself. Raises RequestError."""
    heads = HEADS.get(recipe.adaptation, (recipe.head,))
    if recipe.head not in heads:
        other = f'leave it out, or take {" or ".join(heads[1:])}' if heads[1:] else 'leave it out'
        raise RequestError(
            f'--set recipe.head={recipe.head}: recipe.adaptation={recipe.adaptation} says itself which head there is; '
            + other
        )
    if recipe.trainable and recipe.adapts:
        raise RequestError(
            '--set recipe.trainable: the adaptation of an encoder says itself what learns; leave out one of '
            'recipe.trainable and recipe.adaptation, recipe.layer_decay or a new head'
        )


def _folds(split: ByGroup, target: Target) -> None:
    """Raises: RequestError for folds that are none, that leave other fields unused, or whose results cannot be one."""
    if split.within and not (split.fold or split.folds):
        raise RequestError(f'--set split.within={split.within}: it needs folds, as --set split.folds=5')
    if split.validate_by and not (split.fold or split.folds):
        raise RequestError(f'--set split.validate_by={split.validate_by}: it needs folds, as --set split.folds=2')
    if split.fold and split.folds:
        raise RequestError('--set split.fold, split.folds: one of the folds, or all of them')
    if split.fold:
        split.fold_numbers()
    if (
        split.folds
        and split.folds != 'all'
        and not (split.folds.isdecimal() and split.folds[0] != '0' and split.folds != '1')
    ):
        raise RequestError(f"--set split.folds: {split.folds!r} must be 2 or more, or 'all': a fold for each group")
    if split.folds and isinstance(target, Embedding):
        raise RequestError('--set split.folds: ranks among the stimuli of several folds cannot be one result')


def _band(task: Task) -> None:
    """Refuse a band that resampling cuts off. The default one is that of the published protocols, some of which pass
    the edge. Raises RequestError."""
    band, edge = task.signal.band, task.signal.sfreq / 2
    if band is not None and band != SignalSpec.band and band[1] > edge:
        raise RequestError(
            f'--set signal.band: {band[1]:g} Hz is past {edge:g} Hz, where resampling to signal.sfreq={2 * edge:g} '
            f'cuts off: end it at {edge:g} Hz or below, or raise signal.sfreq'
        )


def _fitting(task: Task) -> None:
    """Refuse a metric, loss, sampler or level that does not fit the target. Raises RequestError."""
    target, recipe = task.target, task.recipe
    kind, known = target.kind, metrics.of_kind(target.kind)
    if task.metric not in known:
        raise unknown(f'metric of {kind}', task.metric, known)
    if recipe.loss not in target.losses:
        learnt = ' or '.join(map(repr, target.losses))
        raise RequestError(f'--set recipe.loss: {recipe.loss!r} does not fit {kind}, learnt by {learnt}')
    if recipe.few_shot and kind not in CLASSES:
        there = ', '.join(CLASSES)
        raise RequestError(f'--set recipe.few_shot: targets of kind {kind!r} have no classes, only {there} have')
    if recipe.few_shot_draw and not recipe.few_shot:
        raise RequestError('--set recipe.few_shot_draw: unused without recipe.few_shot, as --set recipe.few_shot=10')
    if recipe.class_weights and recipe.loss not in WEIGHTED:
        weighted = ' and '.join(WEIGHTED)
        raise RequestError(f'--set recipe.class_weights: {recipe.loss!r} weighs no classes; only {weighted} do')
    if recipe.sampler not in target.samplers:
        fitting = ', '.join(name for name, t in TARGETS.items() if recipe.sampler in t.samplers)
        raise RequestError(f'--set recipe.sampler: {recipe.sampler!r} is for {fitting}, not for {kind}')
    if recipe.batch_size < 2 and recipe.loss in TOGETHER:
        raise RequestError(
            f'--set recipe.batch_size: {recipe.batch_size}: windows of a batch are answers of each other by '
            f'{recipe.loss!r}: take at least 2'
        )
    if recipe.frames and not recipe.own_head:
        raise RequestError(
            f'--set recipe.adaptation={recipe.adaptation}, recipe.head, recipe.layer: {kind} are answered frame by '
            'frame by the own head of a network; a probe or a new head answers a window once'
        )
    if metrics.METRICS[task.metric].cells and task.stream is None:
        raise RequestError(f'--set metric={task.metric}: a mean over the streams of a task, and this one has none')
    if task.stream is not None and task.level != 'window':
        raise RequestError(f'--set level={task.level}: the windows of a stream are answered, and scored, one by one')
    if task.level not in metrics.METRICS[task.metric].levels:
        averaged = dict.fromkeys(k for m in metrics.METRICS.values() if task.level in m.levels for k in m.kinds)
        raise RequestError(
            f'--set level: targets of kind {kind!r} are not averaged over a {task.level}; only {", ".join(averaged)}'
        )


def _pretraining(task: Task) -> None:
    """Refuse objectives without labels that could not be learnt, or would be answered before. Raises RequestError."""
    recipe, window, kind = task.recipe, task.window, task.target.kind
    if recipe.adaptation == 'ridge_probe' and kind in OBJECTIVES:
        raise RequestError(
            f'--set recipe.adaptation=ridge_probe: it is fitted to targets, and what tells a {kind!r} are other '
            'windows: take recipe.adaptation=probe'
        )
    if kind == 'next' and (window.stride != window.duration or window.jitter):
        raise RequestError(
            f'--set window.stride: {window.stride!r} with windows of {window.duration:g} s; for {kind} both are equal, '
            'without window.jitter: the next window begins where one ends, and shares no sample with it'
        )
    for name, value in (('start', window.start), ('stride', window.stride)) if kind == 'moment' else ():
        if value is not None and abs(value - round(value, 1)) > TINY:
            raise RequestError(
                f'--set window.{name}: {value!r} s: moments of a film are told apart to a tenth of a second; take a '
                'multiple of 0.1'
            )
    if kind != 'hidden':
        return
    if not recipe.own_head:
        raise RequestError(
            f'--set recipe.adaptation={recipe.adaptation}: {kind} samples are put back by the own head of a '
            'network, from windows that hide them; a probe reads features of whole windows, a new head answers none'
        )
    if recipe.mask_channels:
        raise RequestError(f'--set recipe.mask_channels: {recipe.mask_channels!r}: {NO_FAILING}; leave it out')
    if recipe.hide_patch >= window.duration:
        raise RequestError(
            f'--set recipe.hide_patch: {recipe.hide_patch!r} s hides all of a window of {window.duration:g} s: take '
            'less'
        )
