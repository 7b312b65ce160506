"""The networks that ours are timed beside, braindecode's and neuraltrain's, and their steps in PyTorch.

`apart` gives them a process of their own, as their users start one: threads wait as torch has them wait, and memory
comes from the system's allocator, which jbench sets otherwise for itself.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import products
from encoders import N_OUT, Cell

from jbench.data.prepare.workers import end_with_parent
from jbench.models import MODELS
from jbench.models.classic.simpleconv_time_agg import scaled
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import kept_memory

NAMES = {
    'eegnet': 'EEGNet',
    'shallow_fbcsp_net': 'ShallowFBCSPNet',
    'deep4net': 'Deep4Net',
    'eegconformer': 'EEGConformer',
    'bdtcn': 'BDTCN',
    'atcnet': 'ATCNet',
    'ctnet': 'CTNet',
    'eegnex': 'EEGNeX',
    'simpleconv_time_agg': 'SimpleConvTimeAgg',
}  # in braindecode.models; the last one is neuraltrain's
RECIPE = Recipe()
STEPS = 4  # of a call, at most
REMEDY = "pip install -e '.[peers]'"
TESTS = Path(__file__).parents[1] / 'tests'
Call = Callable[..., Any]  # (function, *args): what the function gives, in another process


class Peer(NamedTuple):
    """A network, a batch of windows and labels, and its steps on them, so many in a call."""

    net: Any
    inputs: Any
    labels: Any
    train: Callable[[int], None]
    evaluate: Callable[[int], None]


_peer: Peer | None = None  # of this process


# ---- a process of its own ----


@contextlib.contextmanager
def apart(keep_memory: bool) -> Iterator[Call]:
    """A new process, to call the functions below in; with keep_memory its allocator is set as jbench sets its own.

    Raises, in a call: what the function raises; BrokenProcessPool where the process has died.
    """
    with ProcessPoolExecutor(1, get_context('spawn'), _prepare, (keep_memory,)) as process:
        yield lambda function, *args: process.submit(function, *args).result()


def _prepare(keep_memory: bool) -> None:
    if keep_memory:
        kept_memory.keep()  # while there is one thread
    end_with_parent()


def check(names: Sequence[str]) -> None:
    """Raises: RequestError where a package is missing that these of our networks are timed beside."""
    needed = {'torch': REMEDY, 'braindecode': REMEDY}
    if 'simpleconv_time_agg' in names:
        needed['neuraltrain'] = 'tests/fixtures/make_simpleconv_fixture.py says where it comes from'
    for package, remedy in needed.items():
        if find_spec(package) is None:
            raise RequestError(f'{package} is not installed: {remedy}')


def begin(network: Callable[[], Any], x: np.ndarray, y: np.ndarray, threads: int) -> dict[str, np.ndarray]:
    """Make the network of this process: its first weights, by torch's names."""
    import torch

    global _peer
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net = network()
    weights = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    inputs, labels = torch.tensor(x), torch.tensor(y)
    _peer = Peer(net, inputs, labels, *steps(net, inputs, labels))
    return weights


def found(phase: str) -> dict[str, np.ndarray]:
    """What the network finds without dropout, and then has the weights of before: logits in evaluation ('eval'); loss,
    gradient and running statistics in training."""
    peer = _here()
    if phase == 'eval':
        return {'logits': _without_grad(peer.net, peer.inputs)}
    before = {k: v.clone() for k, v in peer.net.state_dict().items()}
    one_pass = _one_pass(peer.net, peer.inputs, peer.labels)
    peer.net.load_state_dict(before)
    return one_pass


def operations() -> dict[str, float]:
    """Of the products and convolutions of a step, by phase: see `products.torch_operations`."""
    peer = _here()
    return products.torch_operations(peer.net, peer.inputs, peer.labels)


def take(phase: str, n_steps: int) -> float:
    """Take steps of 'train' or 'eval' in one call: its milliseconds."""
    peer = _here()
    return took(partial(peer.train if phase == 'train' else peer.evaluate, n_steps))


def _here() -> Peer:
    assert _peer is not None, 'begin() comes first'
    return _peer


def took(work: Callable[[], Any]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - began)


# ---- networks ----


def braindecode(name: str, n_chans: int, n_times: int, n_out: int) -> Any:
    """A network of braindecode by our name of it."""
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):  # its wheel may want CUDA libraries; these networks never call it
        _without_audio()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from braindecode import models

        return getattr(models, NAMES[name])(n_chans=n_chans, n_times=n_times, n_outputs=n_out)


def neuraltrain(places: np.ndarray, n_times: int, n_out: int) -> Any:
    """SimpleConvTimeAgg of neuraltrain on channels at `places` [C, 3], as NeuralBench configures it."""
    import torch

    _find_fixtures()
    from make_simpleconv_fixture import CONFIG
    from neuraltrain.models.simpleconv import SimpleConvTimeAgg

    net = SimpleConvTimeAgg(**CONFIG).build(len(places), n_out).eval()
    net.register_buffer('places', torch.tensor(places, dtype=torch.float32), persistent=False)  # moves with the network
    plain = net.forward
    net.forward = lambda inputs: plain(inputs, channel_positions=net.places.expand(len(inputs), -1, -1))
    net(torch.zeros(1, len(places), n_times))  # lazy layers take their shapes
    return net


def encoder(cell: Cell) -> Any:
    """A pretrained encoder of braindecode behind the same front and head as ours, at random weights, as the recorded
    numbers of the tests have it, whose state_dict ours takes."""
    _find_fixtures()
    _without_audio()
    import torch

    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        import make_foundation_fixtures as made
        import recorded_encoders

    torch.set_num_threads(threads)  # the fixtures are made on one
    from jbench.models.foundation import labram_channels, steegformer_channels

    # what the tests ask of odd montages and of rounding is not timed: plain electrodes, a plain transform
    names, places = cell.signal.ch_names, cell.signal.positions
    recorded_encoders.places = lambda n: places
    recorded_encoders.LABRAM_CHANNELS = labram_channels.channels(names)
    rows = {name: steegformer_channels.INDEX[name.upper()] for name in names}
    recorded_encoders.STEEGFORMER_CHANNELS = rows
    recorded_encoders.EEGPT_CHANNELS = dict.fromkeys(names)
    made.quiet_spectrum = torch.fft.rfft
    builders = made.BUILDERS | {
        'bendr': made.Bendr,
        'luna_base': partial(made.luna, size=(4, 64, 8)),
        'luna_large': partial(made.luna, size=(6, 96, 10)),
        'reve_base': partial(made.reve, depth=22),
        'steegformer_base': partial(made.steegformer, size=(768, 12, 12)),
        'eegdino_medium': partial(made.eegdino, size='medium'),
    }
    net = builders[cell.name]((cell.n_chans, cell.n_times, N_OUT)).float().eval()
    if cell.name.startswith('eegdino'):
        for layer in net.encoder_layers:
            layer.drop_path = made.DropPath(made.Path.p)
    return net


def of_task(name: str, signal: Signal, n_out: int) -> Any:
    """The network of a task by our name of it."""
    if 'positions' in MODELS[name].asks:
        return neuraltrain(scaled(signal.positions), signal.n_times, n_out)
    return braindecode(name, signal.n_chans, signal.n_times, n_out)


def _find_fixtures() -> None:
    """Let the scripts that write the tests' recorded numbers be imported."""
    sys.path[:0] = [str(TESTS / 'helpers'), str(TESTS / 'fixtures')]


def _without_audio() -> None:
    """Let torchaudio be an empty shell, which no network here calls."""
    for part in ('torchaudio', 'torchaudio.functional', 'torchaudio.transforms'):
        sys.modules.setdefault(part, mock.MagicMock())


# ---- steps ----


def steps(net: Any, inputs: Any, labels: Any) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Training and evaluation on a batch, so many steps in a call, up to `STEPS`. Each step of a call has a
    copy of its own, as ours have: windows come from the memory, not from a cache that the step before has filled."""
    import torch

    copies = [inputs, *(inputs.clone() for _ in range(STEPS - 1))]
    optimiser = torch.optim.AdamW(net.parameters(), lr=RECIPE.lr, weight_decay=RECIPE.weight_decay)

    def train(n_steps: int) -> None:
        net.train()
        for i in range(n_steps):
            optimiser.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(net(copies[i]), labels).backward()
            optimiser.step()

    def evaluate(n_steps: int) -> None:
        for i in range(n_steps):
            _without_grad(net, copies[i])

    return train, evaluate


def _without_grad(net: Any, inputs: Any) -> np.ndarray:
    import torch

    with torch.no_grad():
        return net.eval()(inputs).numpy()


def _one_pass(net: Any, inputs: Any, labels: Any) -> dict[str, np.ndarray]:
    """Loss, gradients and running statistics of a training pass without dropout, by torch's names."""
    import torch

    net.train()
    kind = torch.nn.modules.dropout._DropoutNd
    drops = [m for m in net.modules() if isinstance(m, kind) or hasattr(m, 'att_drop')]  # attention drops by itself
    for drop in drops:
        drop.eval()
    merger = getattr(net, 'merger', None)  # of SimpleConvTimeAgg: silences what lies around a point
    silenced = merger and merger.dropout
    if merger:
        merger.dropout = 0
    loss = torch.nn.functional.cross_entropy(net(inputs), labels)
    loss.backward()
    grads = {k: p.grad.numpy().copy() for k, p in net.named_parameters()}
    net.zero_grad()
    if merger:
        merger.dropout = silenced
    return grads | {k: b.numpy().copy() for k, b in net.named_buffers()} | {'loss': loss.detach().numpy()}
