"""What an autopsy found, in words, each with the number that it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jbench import targets
from jbench.report.autopsy import attribution
from jbench.report.autopsy.ablation import Ablation, Base
from jbench.report.autopsy.case import Case, explained, joined
from jbench.report.autopsy.examine import Parts

ALPHA = 0.05  # from which chance explains the answers
FEWEST = 20  # orders of the targets: of fewer, the own one alone is more than ALPHA of them
NAMED = 5  # parts, in a sentence
TIE = 1e-9  # between headlines: what rounding leaves
UNTRAINED = 'chance'  # the model of that name, which is no chance level
OF_PART = {'channel': 'channel', 'time': 'stretch of time', 'frequency': 'band of frequencies'}


class Statement(NamedTuple):
    """One sentence."""

    about: str  # 'answers', 'channel', 'time', 'frequency', 'attribution', 'network'
    text: str
    number: float | None  # which it rests on
    names: tuple[str, ...] = ()  # what it points at


def answers_something(base: Base) -> bool:
    """Whether a run answers better than with shuffled targets, or these are too few to tell. What it rests on is told
    of such a run alone."""
    return bool(np.isfinite(base.value)) and (base.p <= ALPHA or _too_few(base))


def _too_few(base: Base) -> bool:
    return base.orders < FEWEST


def findings(case: Case, parts: Parts) -> list[Statement]:
    """Everything that can be said, the answers first."""
    found = [*_answers(case, parts), *_compared(parts)]
    if answers_something(parts.base):
        for one in parts.ablations:
            found.append(_fell(case, one))
        found += _attributed(case, parts)
    elif case.network is not None:
        falls = joined([f'{_largest(one):.3g} ({one.family})' for one in parts.ablations])
        found.append(
            Statement(
                'answers',
                'Nothing stands out: answers are no better than with shuffled targets, so channels, times and '
                f'frequencies point at nothing. Largest falls of {case.metric} without a part: {falls}.',
                max(map(_largest, parts.ablations), default=None),
            )
        )
    return found + [*_complete(parts), *_network(case, parts)]


def _largest(one: Ablation) -> float:
    return float(one.falls.max(initial=0))


def _answers(case: Case, parts: Parts) -> Iterator[Statement]:
    base, found = parts.base, parts.answers
    if not np.isfinite(base.value):
        yield Statement('answers', f'{case.metric} is not defined on these windows.', None)
        return
    if _too_few(base):
        text = (
            f'{case.metric} is {base.value:.3f}; targets have too few orders ({base.orders}) to tell whether it is '
            'better than with shuffled ones.'
        )
    else:
        verb = 'better than' if answers_something(base) else 'not better than'
        low, high = np.quantile(base.shuffled, [0.025, 0.975]) if len(base.shuffled) else (np.nan, np.nan)
        text = (
            f'{case.metric} is {base.value:.3f}, {verb} with shuffled targets ({low:.3f} to {high:.3f} in 95 % of '
            f'{len(base.shuffled)} shufflings, p = {base.p:.3g}).'
        )
    yield Statement('answers', text, base.value)
    if found.confusion is not None and found.confusion.sum() > np.trace(found.confusion):
        wrong = found.confusion - np.diag(np.diag(found.confusion))
        true, said = np.unravel_index(wrong.argmax(), wrong.shape)
        total = found.confusion[true].sum()
        names = [case.classes[k] if k < len(case.classes) else str(k) for k in (int(true), int(said))]
        yield Statement(
            'answers',
            f'The commonest mistake: {names[0]} is called {names[1]} in {wrong[true, said]} of {total} windows.',
            float(wrong[true, said] / total),
        )
    subjects = np.unique(case.answers['subject'])
    if len(subjects) > 1:
        cost = np.array([found.cost[case.answers['subject'] == s].mean() for s in subjects])
        worst = int(cost.argmax())
        yield Statement(
            'answers',
            f'Subject {subjects[worst]} is answered worst: {found.cost_name} {cost[worst]:.3g}, median of '
            f'{len(subjects)} subjects {np.median(cost):.3g}.',
            float(cost[worst]),
            (str(subjects[worst]),),
        )


def _compared(parts: Parts) -> Iterator[Statement]:
    for one in parts.answers.compared:
        if one.value is None or one.better is None:
            continue
        more = ''
        if one.alike is not None:
            more = (
                f'; they answer {one.alike:.0%} of windows alike, {one.only_mine} are right here alone, '
                f'{one.only_other} there alone'
            )
        side = f'{abs(one.better):.3f} {"better" if one.better > 0 else "worse"} than'
        if abs(one.better) < TIE:
            side = 'as good as'
        name = f'the untrained network {one.name}' if one.name.partition(' ')[0] == UNTRAINED else one.name
        text = f'This run is {side} {name} ({one.value:.3f}){more}.'
        yield Statement('answers', text, one.better, (one.name,))


def _fell(case: Case, one: Ablation) -> Statement:
    """What a run needs of one family."""
    what, out = OF_PART[one.family], one.out
    floor = f'{one.floor:.3g}, the largest fall that chance gives over {len(one.parts)}'
    if not out:
        fall = float(one.falls[int(one.order[0])])
        text = f'No single {what} stands out: the largest fall of {case.metric}, {fall:.3g}, is not above the floor'
        return Statement(one.family, f'{text} ({floor}).', fall)
    named = [f'{one.parts[k]} ({one.falls[k]:.3g})' for k in out[:NAMED]]
    rest = f' and {len(out) - NAMED} more' if len(out) > NAMED else ''
    text = f'{case.metric} falls most without {joined(named)}{rest} (floor: {floor}).'
    return Statement(one.family, text, float(one.falls[out[0]]), tuple(one.parts[k] for k in out))


def _attributed(case: Case, parts: Parts) -> Iterator[Statement]:
    """What attributions point at."""
    found = parts.attribution
    if found is None or parts.explained is None:
        return
    values = found.samples.sum(2)
    mean, floor = values.mean(0), attribution.floor(values)
    order = [int(k) for k in np.argsort(-mean) if mean[k] > floor]
    names = [case.signal.ch_names[k] if k < len(case.signal.ch_names) else f'channel {k}' for k in order]
    if order:
        share = mean[order[:3]].sum() / np.maximum(mean, 0).sum()
        text = (
            f'Of what speaks for {explained(case)}, {share:.0%} comes from {joined(names[:3])} (by integrated '
            f'gradients; as much from each channel would be {min(3, len(order)) / len(mean):.0%}).'
        )
        yield Statement('attribution', text, float(share), tuple(names))
    if len(found.hz) < 2:  # windows of one sample
        return
    for name, rows in groups(case, parts).items():
        of_class = found.frequencies[rows].sum(1)
        peaks = _peaks(of_class)
        if not peaks:
            continue
        total = np.maximum(of_class.mean(0), 0).sum()
        said = [f'{found.hz[k]:.4g} Hz ({of_class[:, k].mean() / total:.0%})' for k in peaks[:3]]
        text = f'What speaks for {name} lies most at {joined(said)} of the frequencies ({len(rows)} windows).'
        share = float(of_class[:, peaks[0]].mean() / total)
        yield Statement('attribution', text, share, tuple(f'{found.hz[k]:.4g} Hz' for k in peaks[:3]))


def groups(case: Case, parts: Parts) -> dict[str, np.ndarray]:
    """Numbers of the windows with attributions, by class; of few, or other targets, all together."""
    assert parts.explained is not None
    everything = np.arange(len(parts.explained))
    if not targets.of(case.kind).single or not 2 <= len(case.classes) <= 8:
        return {'the answer': everything}
    y = case.answers['y'][parts.explained]
    found = {name: np.flatnonzero(y == k) for k, name in enumerate(case.classes)}
    return {name: rows for name, rows in found.items() if len(rows) >= 4} or {'the answer': everything}


def _peaks(values: np.ndarray) -> list[int]:
    """Frequencies that are above the floor and their neighbours, the highest first."""
    mean, floor = values.mean(0), attribution.floor(values)
    padded = np.pad(mean, 1, constant_values=-np.inf)
    top = (mean > floor) & (mean >= padded[:-2]) & (mean >= padded[2:])
    return sorted(np.flatnonzero(top).tolist(), key=lambda k: -mean[k])


def _complete(parts: Parts) -> Iterator[Statement]:
    found = parts.attribution
    if found is not None:
        yield Statement(
            'network',
            f'Attributions add up to the difference of the answer from that to the mean of training windows within '
            f'{found.missing:.2%} ({found.steps} points, {len(found.samples)} windows).',
            found.missing,
        )


def _network(case: Case, parts: Parts) -> Iterator[Statement]:
    """Dead units, and gradients that vanish."""
    if case.network is None:
        return
    if not parts.layers:
        yield Statement('network', 'The network names no features, so its layers are not seen.', None)
    dead = {layer.name: (len(layer.dead), len(layer.spread)) for layer in parts.layers}
    total = sum(n for n, _ in dead.values())
    named = joined([f'{name} ({n} of {most})' for name, (n, most) in dead.items() if n])
    if parts.layers:
        text = f'Units that never change: {named}.' if total else 'No unit of a layer is dead: each changes.'
        yield Statement('network', text, float(total), tuple(name for name, (n, _) in dead.items() if n))
    for name in parts.aside:
        yield Statement(
            'network', f'No gradient reaches the layer {name}: the answer does not rest on it.', 0.0, (name,)
        )
    for name in parts.timeless:
        text = f'The gradient reaches the layer {name} only through a token of no time, so it has no GradCAM.'
        yield Statement('network', text, None, (name,))
    for name in parts.unseen:
        text = (
            f'Whether the answer rests on the layer {name} is not seen: it is made and read inside of a loop, a branch '
            'or a function with a derivative of its own (jax.lax.scan, cond, jax.custom_vjp), so it has no GradCAM.'
        )
        yield Statement('network', text, None, (name,))
    if parts.flow is not None and parts.flow.weight.any():
        relative, gone = parts.flow.relative, parts.flow.vanished
        low, high = int(np.nanargmin(relative)), int(np.nanargmax(relative))
        names = parts.flow.names
        text = (
            f'Beside its weights, the gradient is largest in {names[high]} ({relative[high]:.2g}) and smallest in '
            f'{names[low]} ({relative[low]:.2g}); none reaches {len(gone)} of {len(names)} tensors'
            + (f': {joined(gone[:NAMED])}.' if gone else '.')
        )
        yield Statement('network', text, float(relative[low]), gone)
