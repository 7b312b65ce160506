"""MultiscaleSSM: windows, regions, causality, dropout, and that it learns what each of its paths is for."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from families import often
from networks import compiled

from jbench.data.electrodes import positions
from jbench.models import MODELS, validate
from jbench.models.classic import multiscale_ssm as m
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.train.programs import asked_signal

PLACES = positions('Fp1 F4 T7 C3 Cz P8 O1 Oz'.split())


def signal(n_times: int = 240, n_chans: int = 8, sfreq: float = 120.0) -> Signal:
    return Signal(n_chans=n_chans, n_times=n_times, sfreq=sfreq, positions=(PLACES * 3)[:n_chans])


def batch(model_signal: Signal, rows: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((rows, model_signal.n_chans, model_signal.n_times))
    return {'x': x.astype(np.float32), 'mask': np.ones(rows, bool)}


def drawn(model: Model) -> Any:
    return compiled(model.init)(jax.random.key(0))


def answered(model: Model, variables: Any, given: dict[str, np.ndarray]) -> Any:
    return compiled(lambda v, b: model.apply(v, b, train=False, key=None))(variables, given)


@pytest.mark.parametrize(('t', 'step', 'spans'), [(1, 6, 2), (12, 6, 2), (13, 5, 10), (60, 5, 3)])
def test_windows_end_with_the_signal_and_zeros_stand_before_it(t: int, step: int, spans: int) -> None:
    x = np.arange(1.0, t + 1)
    found = np.asarray(m.windows(jnp.asarray(x)[None], step, spans))[0]
    padded, n = np.concatenate([np.zeros(1000), x]), -(-t // step)
    for k in range(n):
        end = 1000 + t - (n - 1 - k) * step
        np.testing.assert_array_equal(found[k], padded[end - spans * step : end])
    assert len(found) == n


@pytest.mark.parametrize(
    ('sfreq', 'n_times', 'fast', 'slow', 'taps'),
    [
        (120.0, 240, 40, 4, (12, 20)),
        (120.0, 1200, 200, 20, (12, 50)),
        (200.0, 6000, 600, 60, (20, 50)),
        (10.0, 1, 1, 1, (2, 5)),
    ],
)
def test_windows_last_100_ms_and_5_s(sfreq: float, n_times: int, fast: int, slow: int, taps: tuple[int, int]) -> None:
    """Shorter slow ones where the signal is; weights are as long as windows."""
    made = m.multiscale_ssm(signal(n_times, sfreq=sfreq), 2)
    shapes = jax.eval_shape(made.init, jax.random.key(0))['params']
    assert shapes['fast_time'].shape == (fast, m.WIDTH) and shapes['slow_time'].shape == (slow, m.WIDTH)
    found = (shapes['fast']['filters']['weight'].shape[1], shapes['slow']['token']['weight'].shape[1])
    assert found == (m.MIXTURES * taps[0], m.MIXTURES * taps[1])


@pytest.mark.parametrize('changed', often((100, 235), (100,)))
def test_tokens_are_causal_in_time(changed: int) -> None:
    """Samples from `changed` on change no token that ends before, to the bit; they do change the later ones."""
    at = signal()
    made = m.multiscale_ssm(at, 2)
    variables, given = drawn(made), batch(at)
    other = {**given, 'x': given['x'].copy()}
    other['x'][:, :, changed:] += 5
    before, after = (answered(made, variables, b).features for b in (given, other))
    for name, step in (('fast_tokens', 6), ('slow_tokens', 60)):
        a, b = (np.asarray(f[name]).reshape(3, 4, -1, m.WIDTH) for f in (before, after))
        n = a.shape[2]
        ends = at.n_times - step * np.arange(n - 1, -1, -1)
        np.testing.assert_array_equal(a[:, :, ends <= changed], b[:, :, ends <= changed])
        assert (np.abs(a - b).max((0, 1, 3))[ends > changed] > 1e-3).all()


@pytest.mark.slow
def test_regions_are_those_of_the_positions() -> None:
    """Mixtures of a region see its channels alone; one without a place has a region of its own."""
    places = (*positions(('Fz', 'Oz', 'O1')), None)
    at = Signal(n_chans=4, n_times=120, sfreq=120.0, positions=places)
    made = m.multiscale_ssm(at, 2)
    variables = drawn(made)
    shapes = jax.tree.map(np.shape, variables['params']['mixtures'])
    assert shapes == {'frontal': (8, 1), 'occipital': (8, 2), 'elsewhere': (8, 1)}
    mixed = m._Mixtures((('frontal', (0,)), ('occipital', (1, 2)), ('elsewhere', (3,))), 4)
    x = batch(at)['x']
    found = compiled(mixed.apply)({'params': variables['params']['mixtures']}, x)
    for r, (name, channels) in enumerate((('frontal', [0]), ('occipital', [1, 2]), ('elsewhere', [3]))):
        wanted = np.einsum('sc,bct->bst', variables['params']['mixtures'][name], x[:, channels])
        np.testing.assert_allclose(found[:, r], wanted, atol=1e-5)


@pytest.mark.slow
def test_a_window_does_not_depend_on_the_others_and_dropout_needs_a_key() -> None:
    at = signal(120)
    made = m.multiscale_ssm(at, 3, dropout=0.5)
    variables, given = drawn(made), batch(at)
    every = answered(made, variables, given).outputs
    alone = answered(made, variables, {'x': given['x'][1:2], 'mask': np.ones(1, bool)}).outputs
    np.testing.assert_allclose(every[1:2], alone, atol=1e-5)
    train = compiled(lambda key: made.apply(variables, given, train=True, key=key).outputs)
    one, same, two = train(jax.random.key(1)), train(jax.random.key(1)), train(jax.random.key(2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - two).max() > 1e-3


@pytest.mark.parametrize(
    ('known', 'dropout', 'words'),
    [(PLACES[:3], 0.25, 'needs the positions of all 8 channels'), (PLACES, 1.0, 'dropout=1.0')],
)
def test_what_it_cannot_read_is_refused(known: Any, dropout: float, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        m.multiscale_ssm(Signal(n_chans=8, n_times=120, sfreq=120.0, positions=known), 2, dropout=dropout)


def test_channels_that_no_montage_knows_are_named() -> None:
    with pytest.raises(RequestError, match='no channel is an electrode'):
        asked_signal(MODELS['multiscale_ssm'], Signal(n_chans=2, n_times=9, sfreq=10.0, ch_names=('X1', 'X2')))


@pytest.mark.long
def test_it_keeps_the_contract_of_networks() -> None:
    """Mask, rows, order, state, and a batch that is split over devices, dropout among it."""
    at = signal(60)
    validate.check(lambda: m.multiscale_ssm(at, 3, axis_name='data'), 'multiscale_ssm', at, 3, 'data', several=True)


def bursts(rng: np.random.Generator, hz: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise; in every second window an oscillation of random phase at the back."""
    t, y = np.arange(240) / 120, np.arange(n) % 2
    x = rng.standard_normal((n, 8, 240))
    wave = np.sin(2 * np.pi * (hz * t + rng.uniform(size=(n, 1))))
    x[:, 4:] += 1.2 * (y[:, None] * wave)[:, None]
    return x.astype(np.float32), y


@pytest.mark.parametrize('hz', often((1.5, 10.0, 35.0), (1.5,)))
def test_it_learns_slow_and_fast_rhythms_whatever_their_phase(hz: float) -> None:
    """Simulated; from 256 windows, tested on 256 others."""
    rng = np.random.default_rng(0)
    (x, y), (other, truth) = bursts(rng, hz, 256), bursts(rng, hz, 256)
    made = m.multiscale_ssm(signal(), 2)
    variables, tx = drawn(made), optax.adamw(3e-3)
    params, opt = variables['params'], tx.init(variables['params'])

    @jax.jit
    def step(params: Any, opt: Any, x: Any, y: Any, key: Any) -> Any:
        def loss(p: Any) -> Any:
            given = {'x': x, 'mask': jnp.ones(len(x), bool)}
            logits = made.apply({'params': p, 'batch_stats': {}}, given, train=True, key=key).outputs
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        grads = jax.grad(loss)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt

    for k in range(60):
        rows = rng.permutation(len(x))[:64]
        params, opt = step(params, opt, x[rows], y[rows], jax.random.key(k))
    found = answered(made, {'params': params, 'batch_stats': {}}, {'x': other, 'mask': np.ones(256, bool)}).outputs
    assert (np.asarray(found).argmax(1) == truth).mean() > 0.9
