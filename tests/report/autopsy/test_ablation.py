"""What is taken away is missed where it was needed, and nothing is missed by a run that answers by chance."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from autopsies import C, N, T, case_of, planted, written
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from jbench.report.autopsy import ablation
from jbench.report.autopsy.case import predictor
from jbench.report.autopsy.examine import examine
from jbench.report.autopsy.findings import answers_something, findings
from jbench.report.autopsy.pictures import NOISE, PLAIN, pictures


@pytest.fixture(scope='module')
def found():
    case = planted()
    return case, examine(case)


@pytest.mark.slow
def test_the_planted_channel_time_and_frequency_stand_out_alone(found, monkeypatch):
    case, parts = found
    channel, time, _ = parts.ablations
    assert [channel.parts[k] for k in channel.out] == ['C3']
    assert channel.falls[1] > 0.3 and not channel.falls[[0, 2, 3]].any(), 'others are not read'
    inside = [low < 0.6 and high > 0.4 for low, high in time.edges]
    assert not time.falls[np.logical_not(inside)].any()
    monkeypatch.setattr(ablation, 'STRETCHES', 5)
    fifths = ablation.stretches(case, case.network, predictor(case, case.network))
    assert [fifths.parts[k] for k in fifths.out] == ['0.4 to 0.6 s']
    long = planted(0, T, 0.6)
    found = ablation.bands(long, long.network, predictor(long, long.network))
    assert [found.parts[k] for k in found.out] == ['10 to 12 Hz']
    assert answers_something(parts.base) and parts.base.p == pytest.approx(1 / 201)


@pytest.mark.slow
def test_findings_name_what_was_planted_with_its_number(found):
    case, parts = found
    by_family = {f.about: f for f in findings(case, parts) if f.about in ('channel', 'time', 'frequency')}
    assert by_family['channel'].names == ('C3',)
    assert by_family['channel'].number == pytest.approx(parts.ablations[0].falls[1])
    assert f'C3 ({parts.ablations[0].falls[1]:.3g})' in by_family['channel'].text
    (share,) = (f for f in findings(case, parts) if f.text.startswith('Of what speaks'))
    assert share.names == ('C3',) and share.number == pytest.approx(1)
    rates = {f.text.split()[3]: f.names for f in findings(case, parts) if f.text.startswith('What speaks for ')}
    assert {*rates} == set(case.classes)
    assert all(name in ('9 Hz', '10 Hz', '11 Hz') for (name, *_) in rates.values())  # a fifth of a second of 10 Hz


@pytest.mark.slow
def test_a_band_is_taken_out_and_the_rest_stays():
    case = planted()
    seen = []
    ablation.bands(case, case.network, lambda x: seen.append(x) or case.answers['outputs'])
    whole, *lacking = (np.abs(np.fft.rfft(x)).sum((0, 1)) for x in seen)
    hz = np.fft.rfftfreq(T, 1 / 60)
    edges = ablation.band_edges(case.network.x, 60.0)
    assert len(edges) == len(lacking) and edges[0] == (0.0, 2.0)
    for (low, high), left in zip(edges, lacking, strict=True):
        gone = (hz >= low) & (hz < high)
        np.testing.assert_allclose(left[~gone], whole[~gone], rtol=1e-3)
        assert left[gone].max() < 1e-3 * whole.max()


@pytest.mark.parametrize(
    ('sfreq', 'n', 'top', 'width'), [(256.0, 1024, 45.0, 2.0), (1000.0, 1000, 400.0, 20.0), (0.5, 40, 0.2, 0.02)]
)
def test_bands_are_round_and_few(sfreq, n, top, width):
    t, rng = np.arange(n) / sfreq, np.random.default_rng(0)
    wanted = np.linspace(0, top, 40)
    x = np.sin(2 * np.pi * wanted[:, None] * t + rng.uniform(0, 6, (40, 1))).sum(0)[None, None]
    edges = ablation.band_edges(x, sfreq)
    assert 1 < len(edges) <= 64
    assert edges[1][1] - edges[1][0] == pytest.approx(width, rel=0.6)
    assert ablation.band_edges(x[..., :4], sfreq) == []


def test_bands_above_nearly_all_power_are_taken_away_too():
    t, rng = np.arange(256) / 256, np.random.default_rng(0)
    x = (10 * np.sin(2 * np.pi * 9 * t) + 0.5 * np.sin(2 * np.pi * 41 * t))[None, None]
    assert ablation.band_edges(x, 256.0) == [(8.0, 10.0), (40.0, 42.0)]
    size = np.where(np.arange(501) <= 10, 1.0, 0.0)
    size[12:190] = 0.0245  # 0.01 % of the power and a little in each of 89 bands of 2 Hz: they are made wider
    many = np.fft.irfft(size * np.exp(1j * rng.uniform(0, 6, 501)), 1000)[None, None]
    edges = ablation.band_edges(many, 1000.0)
    assert 32 < len(edges) <= 64 and edges[0] == (0.0, 4.0) and edges[-1][1] > 180


@pytest.mark.slow
def test_chance_stands_out_in_few_runs(monkeypatch):
    """Answers that have nothing to do with the targets: at most a few of 20 seem better than shuffled ones."""
    monkeypatch.setattr(ablation, 'DRAWS', 59)
    rng, wrong = np.random.default_rng(0), 0
    model = written(lambda p, x: (x[:, :2, 0], {}), {})
    for _ in range(20):
        case = case_of(model, rng.normal(0, 1, (N, C, 2)).astype(np.float32), rng.integers(0, 2, N))
        wrong += answers_something(ablation.base(case))
    assert wrong <= 4, 'of 20 at 5 %: more with a probability of 0.3 %'


@pytest.mark.slow
def test_a_run_by_chance_points_at_nothing():
    rng = np.random.default_rng(3)
    case = planted()
    case = case._replace(answers={**case.answers, 'y': rng.permutation(case.answers['y'])})
    parts = examine(case)
    said = findings(case, parts)
    assert not any(f.about in ('channel', 'time', 'frequency', 'attribution') for f in said)
    (nothing,) = (f for f in said if f.text.startswith('Nothing stands out'))
    assert nothing.number is not None and nothing.names == ()
    drawn = pictures(case, parts)
    assert all(NOISE in drawn[f'without_{family}'][1] for family in ('channel', 'time', 'frequency'))
    figure = Figure()
    drawn['without_channel'][2](figure)
    assert {bar.get_facecolor()[:3] for bar in figure.axes[0].patches} == {to_rgb(PLAIN)}


@pytest.mark.slow
def test_the_floor_holds_for_a_family(monkeypatch):
    """A network with answers, and parts whose loss changes answers at random: no part stands out more than chance."""
    monkeypatch.setattr(ablation, 'DRAWS', 59)
    case, rng, wrong = planted(), np.random.default_rng(0), 0
    noise = case._replace(metric='acc')
    for _ in range(20):
        predict = iter([rng.normal(0, 1, (N, 2)).astype(np.float32) for _ in range(1 + C)])
        wrong += bool(ablation.channels(noise, case.network, lambda x, p=predict: next(p)).out)
    assert wrong <= 4, 'of 20 at 5 %: more with a probability of 0.3 %'


def test_targets_change_places_where_they_vary():
    """Inside of subjects; whole subjects where each has one target."""
    case, rng = planted(), np.random.default_rng(0)
    y = case.answers['y']
    mixed = ablation._shuffled(case, ablation._units(case.answers), rng)['y']
    for s in ('01', '02'):
        mine = case.answers['subject'] == s
        assert sorted(mixed[mine]) == sorted(y[mine]) and not np.array_equal(mixed[mine], y[mine])
    subject = np.repeat([f'{k:02}' for k in range(8)], 6)
    answers = {**case.answers, 'subject': subject, 'y': (subject > '03').astype(int)}
    units = ablation._units(answers)
    traits = ablation._shuffled(case._replace(answers=answers), units, rng)['y'].reshape(8, 6)
    assert (traits == traits[:, :1]).all() and traits[:, 0].sum() == 4


def subjects_with(*targets: list[int]) -> tuple:
    """A run that answers every window right; the targets of each subject, one window a recording."""
    y = np.concatenate(targets)
    subject = np.repeat([f'{k:03}' for k in range(len(targets))], [len(one) for one in targets])
    answers = {'id': np.arange(len(y)) << ablation.SHIFT, 'y': y, 'subject': subject}
    case = planted()._replace(answers=answers | {'outputs': 5 * np.eye(2, dtype=np.float32)[y]}, network=None)
    return case, ablation.base(case)


def test_one_subject_with_two_targets_does_not_keep_those_of_others_in_their_place():
    case, base = subjects_with(*([k % 2] * 3 for k in range(40)), [0, 1, 1])
    block, unit = ablation._units(case.answers)
    assert {*block[:-3]} == {-1} and {*block[-3:]} == {40} and len(np.unique(unit)) == 43
    assert base.value == 1 and base.p == pytest.approx(1 / 201) and np.ptp(base.shuffled) > 0.2
    (first, *_) = findings(case, examine(case))
    assert ', better than with shuffled targets' in first.text


def test_windows_of_a_recording_with_one_target_stay_together_whatever_others_hold():
    """Subject 0 has recordings of one target each, subject 1 one recording of two."""
    recording = np.repeat([0, 1, 2, 3, 4], 4)
    y = np.r_[np.repeat([0, 1, 1, 0], 4), [0, 1, 0, 1]]
    answers = {'id': recording << ablation.SHIFT, 'y': y, 'subject': np.repeat(['0', '1'], [16, 4])}
    block, unit = ablation._units(answers)
    assert len(np.unique(unit[:16])) == 4 and len(np.unique(unit[16:])) == 4
    assert len(np.unique(block)) == 2 and (block[:16] == block[0]).all()


def test_too_few_orders_of_the_targets_tell_nothing():
    """Two subjects of each class: a perfect run is one of six orders."""
    case, base = subjects_with([0, 0], [0, 0], [1, 1], [1, 1])
    (first, *_) = findings(case, examine(case))
    assert first.text == (
        'bal_acc is 1.000; targets have too few orders (6) to tell whether it is better than with shuffled ones.'
    )
    assert base.orders == 6 and base.p == pytest.approx(1 / 6) and answers_something(base)
    case, base = subjects_with(*[[0]] * 3, *[[1]] * 3)
    assert base.orders == 20 and base.p == pytest.approx(1 / 20) and answers_something(base)


def test_a_constant_that_has_no_score_is_as_bad_as_chance():
    """The one channel is taken away, and with it what correlates; where both have no score nothing falls."""
    case = planted()
    x = case.network.x[:, :1]
    y = x.mean((1, 2))[:, None]
    case = case._replace(kind='value', metric='pearsonr', classes=(), answers=case.answers | {'y': y, 'outputs': y})
    network = case.network._replace(x=x)
    found = ablation.channels(case, network, lambda x: x.mean((1, 2))[:, None])
    assert found.falls == pytest.approx([1.0]) and found.out == (0,)
    assert ablation.channels(case, network, lambda x: np.ones((len(x), 1))).falls == pytest.approx([0.0])


@pytest.mark.slow
def test_a_constant_network_gives_no_nan():
    model = written(lambda p, x: (jnp.ones((len(x), 2)), {'layer': jnp.zeros((len(x), 3, 5))}), {'w': np.ones(2, 'f4')})
    case = planted()
    case = case_of(model, case.network.x, case.answers['y'])
    loss = lambda params, batch: (0 * params['w']).sum()  # noqa: E731
    case = case._replace(network=case.network._replace(loss=loss, batches=({},)))
    parts = examine(case)
    assert all(not one.falls.any() and np.isfinite(one.floor) and not one.out for one in parts.ablations)
    assert [f for f in findings(case, parts) if f.number is not None and not np.isfinite(f.number)] == []
    assert 'nan' not in ' '.join(f.text for f in findings(case, parts))
    assert len(parts.layers[0].dead) == len(parts.layers[0].spread) and parts.aside == ('layer',)


@pytest.mark.slow
def test_an_estimator_is_ablated_by_what_it_predicts():
    """Nothing but answers to windows is asked for."""
    case = planted()
    weights = np.asarray(case.network.variables['params']['weights'])
    found = ablation.channels(case, case.network, lambda x: np.einsum('bct,ctk->bk', x, weights))
    np.testing.assert_allclose(found.falls, ablation.channels(case, case.network, predictor(case, case.network)).falls)


def test_errors_of_windows_stand_for_answers_whose_mean_they_are(monkeypatch):
    """Of angles, each as long as its window: the same falls and floor as by scoring answers again and again."""
    case = planted()
    y = np.radians(np.where(case.answers['y'], 20, 0)[:, None] + np.linspace(0, 30, 6)).astype(np.float32)
    case = case._replace(kind='angles', metric='angular_mae', classes=(), answers=case.answers | {'y': y})
    predict = predictor(case, case.network)
    found = ablation.channels(case, case.network, predict)
    of = ablation.targets.of
    monkeypatch.setattr(ablation.targets, 'of', lambda kind: of(kind)._replace(errors=None))
    again = ablation.channels(case, case.network, predict)
    np.testing.assert_allclose(found.falls, again.falls, rtol=1e-9, atol=1e-9)
    assert found.falls.any() and found.floor == pytest.approx(again.floor)
    assert np.isfinite(ablation.base(case).value)
