"""All parts of an autopsy, computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jbench.report.autopsy import ablation, activations, attribution, gradcam, gradients, predictions
from jbench.report.autopsy.case import Case, Network, chosen, given, predictor, some, towards
from jbench.targets import of

EXPLAINED = 64  # windows with attributions


class Parts(NamedTuple):
    """What was found; None, or nothing, of what this run does not allow."""

    answers: predictions.Answers
    base: ablation.Base
    ablations: tuple[ablation.Ablation, ...] = ()
    flow: gradients.Flow | None = None
    layers: tuple[activations.Layer, ...] = ()
    attribution: attribution.Attribution | None = None
    explained: np.ndarray | None = None  # rows of the answers with attributions
    cams: dict[str, np.ndarray] = {}  # noqa: RUF012  layer -> [N, times] of these windows (nobody writes into it)
    aside: tuple[str, ...] = ()  # layers that the answer does not rest on
    timeless: tuple[str, ...] = ()  # those of which it reads the token of no time alone
    unseen: tuple[str, ...] = ()  # those inside of a loop or branch, whose gradient cannot be seen


def examine(case: Case, say: Callable[[str], object] = lambda text: None) -> Parts:
    """Compute every part. `say` is told what is being computed."""
    say('answers')
    parts = Parts(predictions.answers(case), ablation.base(case))
    if case.network is None:
        return parts
    network, predict = case.network, predictor(case, case.network)
    found = []
    for family in (ablation.channels, ablation.stretches, ablation.bands):
        say(f'ablation: {family.__name__}')
        one = family(case, network, predict)
        found += [] if one is None else [one]
    say('gradients and activations')
    parts = parts._replace(
        ablations=tuple(found),
        flow=gradients.flow(network),
        layers=tuple(activations.layers(network, case.signal)),
    )
    say('attribution')
    return _explained(case, network, parts)


def _explained(case: Case, network: Network, parts: Parts) -> Parts:
    """Integrated gradients and GradCAM of some windows."""
    pick = some(len(network.x), EXPLAINED)
    rows, x = network.rows[pick], network.x[pick]
    answers = chosen(case.answers, rows)
    outputs = answers['outputs']
    if of(case.kind).frames:  # of which a result keeps the path alone
        outputs = _raw(network, x, case)
    weights = towards(case, outputs, answers)
    found = attribution.integrated(
        network.model, network.variables, x, usual=network.usual, weights=weights, signal=case.signal
    )
    axes = activations.time_axes(network.model, network.variables, network.x[: activations.PROBES], case.signal)
    layers = gradcam.gradients(network.model, network.variables, x, weights=weights, signal=case.signal)
    cams, aside, timeless = {}, [], []
    for name, (a, g) in layers.items():
        time = axes[name]
        if not g.any():
            aside.append(name)
        elif time is not None:
            a, g = (activations.laid_out(network.model, v) for v in (a, g))
            if g.any():
                cams[name] = gradcam.cam(a, g, time)
            else:
                timeless.append(name)
    return parts._replace(
        attribution=found,
        explained=rows,
        cams=cams,
        aside=tuple(aside),
        timeless=tuple(timeless),
        unseen=tuple(name for name in axes if name not in layers),
    )


def _raw(network: Network, x: np.ndarray, case: Case) -> np.ndarray:
    """Outputs of a network for windows, as it gives them."""
    answer = network.model.apply(network.variables, given(case.signal, x), train=False, key=None)
    return np.asarray(answer.outputs)
