"""`--stage=check`: the numbers it prints are those of the data, and its pictures show what is known to be there."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from small import N_SUBJECTS, cell

from jbench import run
from jbench.data.load import prepared_set
from jbench.data.prepare import build_set
from jbench.data.recording import Finding, RecordingRef
from jbench.plan import select
from jbench.report.dataset import facts as dataset_facts
from jbench.report.dataset import figures
from jbench.spec.cell import Cell
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.spec.overrides import override

ASK = ('--task=p3', '--simulated=yes', '--stage=check')


@pytest.fixture(scope='module')
def few() -> Iterator[Cell]:
    """The cell of p3 on five simulated subjects, for the command too."""
    known, p3 = select.datasets(), cell()
    small = dataclasses.replace(p3.dataset, n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS + 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('JBENCH_DATA', raising=False)
        patch.setattr(select, 'datasets', lambda: {**known, small.name: small})
        yield dataclasses.replace(p3, dataset=small)


@pytest.fixture(scope='module')
def work(few, tmp_path_factory) -> Path:
    """A work folder in which the command has prepared the set; what it printed lies there too."""
    folder, out = tmp_path_factory.mktemp('work'), io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run.main([*ASK, f'--workdir={folder}']) == 0
    (folder / 'printed').write_text(out.getvalue())
    return folder


@pytest.fixture(scope='module')
def data(few, work) -> prepared_set.PreparedSet:
    folder, _ = build_set.locate(few.task, few.dataset, None, work)
    assert folder is not None
    return prepared_set.open_set(folder, few.task)


@pytest.mark.slow
def test_what_is_printed_is_what_is_there(few, work, data):
    out = re.sub(' +', ' ', (work / 'printed').read_text())
    assert 'SIMULATED: generated recordings' in out and f'recordings {N_SUBJECTS} present, {N_SUBJECTS + 2} exp' in out
    for k, name in enumerate(('Target', 'NonTarget')):
        counts = [(data.y[data.rows(part)] == k).sum() for part in ('train', 'valid', 'test')]
        assert f'class {name} {" ".join(map(str, counts))}\n' in out
    spread = float(re.search(r'robust sd, median over channels: (\S+) to', out)[1])
    assert 1e-6 < spread < 1e-4  # V
    page = Path(re.search(r'page: (.*)\n', out)[1])
    assert page == work / 'check' / f'p3@{few.task.version}' / few.dataset.name / 'index.html'
    shown = re.findall('src="(.*?)"', page.read_text())
    assert len(shown) == 6 and 'SIMULATED' in page.read_text()
    assert all((page.parent / name).read_bytes().startswith(b'\x89PNG') for name in shown)


@pytest.mark.slow
def test_json_holds_the_same(work, capsys):
    assert run.main([*ASK, f'--workdir={work}', '--format=json']) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts['windows']['class Target']['train'] > 0 and facts['findings'] == [] and Path(facts['page']).exists()


@pytest.mark.slow
def test_each_version_of_a_task_is_shown(work, capsys):
    ask = ['--task=p3@1,p3@2', *ASK[1:], f'--workdir={work}', '--format=json']
    assert run.main(ask) == 0
    assert [facts['task'] for facts in json.loads(capsys.readouterr().out)] == ['p3@1', 'p3@2']


@pytest.mark.slow
def test_the_response_to_targets_is_seen(few, data):
    figure = Figure()
    figures.of_windows(few, data)['evoked'][1](figure)
    for ax in figure.axes:
        assert ax.get_title() in ('Pz', 'CPz', 'Cz', 'P3', 'P4', 'POz')
        means = {line.get_label().split()[0]: line for line in ax.lines if line.get_label() != '_'}
        late = {name: line.get_ydata()[line.get_xdata() > 0.3].mean() for name, line in means.items()}
        assert late['Target'] > late['NonTarget'] + 0.1


def drawn(draw) -> Figure:
    figure = Figure()
    draw(figure)
    return figure


@pytest.mark.slow
def test_means_have_bands_of_standard_errors_zero_lines_units_and_one_scale(few, data):
    micro = dataclasses.replace(few, task=override(few.task, 'signal.scaler', 'micro'))
    figure = drawn(figures.of_windows(micro, data)['evoked'][1])
    assert figure.axes[0].get_ylabel() == 'µV' and figure.get_supxlabel() == 'time from the onset of the event (s)'
    assert len({ax.get_ylim() for ax in figure.axes}) == len({ax.get_xlim() for ax in figure.axes}) == 1
    rows = data.rows('train')
    x, y = prepared_set.read(data, rows, data.clamp), data.y[rows]
    assert len(rows) <= figures.WINDOWS
    for ax in figure.axes:
        c = list(data.signal.ch_names).index(ax.get_title())
        for k, band in enumerate(ax.collections):
            one = x[y == k][:, c]
            error = one.std(0) / np.sqrt(len(one))
            at = band.get_paths()[0].get_extents()
            assert at.y1 == pytest.approx((one.mean(0) + error).max(), rel=1e-3)
            assert at.y0 == pytest.approx((one.mean(0) - error).min(), rel=1e-3)
        assert [0, 0] in [list(line.get_ydata()) for line in ax.lines]
    spectrum = drawn(figures.of_windows(micro, data)['class_spectrum'][1])
    assert spectrum.axes[0].get_ylabel() == 'dB re 1 µV²/Hz' and spectrum.get_supxlabel() == 'frequency (Hz)'
    assert drawn(figures.of_windows(few, data)['evoked'][1]).axes[0].get_ylabel() == 'IQR'


@pytest.mark.slow
@pytest.mark.parametrize(
    'change', [('paradigm', 'ssvep'), ('paradigm', 'sleep'), ('paradigm', 'emg'), ('window.stride', 1.0)]
)
def test_where_nothing_is_evoked_only_spectra_are_shown(change, few, data):
    shown = figures.of_windows(dataclasses.replace(few, task=override(few.task, *change)), data)
    assert 'evoked' not in shown and 'class_spectrum' in shown
    assert 'evoked' in figures.of_windows(few, data)


def looks(n: int, *, n_chans: int = 3) -> list[figures.Look]:
    """Recordings that are all alike."""
    names, hz = [f'channel {c}' for c in range(n_chans)], np.arange(0, 128.0, 0.25)
    power = np.ones((n_chans, len(hz)))
    return [
        figures.Look(f'subject-{k}_session-of-the-first-day_{k}', names, np.full(n_chans, 1e-5), hz, power.copy())
        for k in range(n)
    ]


def test_recordings_have_whole_names_units_and_named_outliers(few):
    found = looks(5)
    found[2].spread[1] = 9e-5
    found[3].spread[0] = 1e-6
    shown = figures.of_recordings(few, found, 9)
    (ax,) = drawn(shown['amplitude'][1]).axes
    assert [t.get_text() for t in ax.get_yticklabels()] == [one.name for one in found]
    assert {(t.get_text(), t.xy[1]) for t in ax.texts} == {('channel 1', 2), ('channel 0', 3)}
    assert ax.get_xlabel() == 'robust sd (µV)' and '5 of 9 recordings' in shown['amplitude'][0]
    (ax,) = drawn(shown['spectrum'][1]).axes
    assert ax.get_ylabel() == 'power (µV²/Hz)' and ax.lines[0].get_ydata()[0] == pytest.approx(1e12)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == found[0].ch_names


def test_of_many_channels_those_far_from_the_others_are_named(few):
    found = looks(2, n_chans=40)
    for one in found:
        one.power[7] *= 1e4
    (ax,) = drawn(figures.of_recordings(few, found, 2)['spectrum'][1]).axes
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ['channel 7']


@pytest.mark.slow
def test_classes_are_told_apart_by_lightness_alone(few, data):
    ax = drawn(figures.of_windows(few, data)['evoked'][1]).axes[0]
    first, last = (np.dot(line.get_color()[:3], [0.2, 0.7, 0.1]) for line in ax.lines[:2])
    assert abs(last - first) > 0.4


@pytest.mark.slow
def test_pictures_of_an_older_page_do_not_stay(few, work):
    page = work / 'check' / f'p3@{few.task.version}' / few.dataset.name / 'index.html'
    old = page.with_name('old.png')
    old.write_bytes(b'')
    assert run.main([*ASK, f'--workdir={work}', '--format=json']) == 0
    assert not old.exists() and page.with_name('evoked.png').exists()


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['value', 'labels', 'embedding', 'keystrokes'])
def test_every_kind_of_target_is_counted_and_drawn(kind, few, data):
    rng, n = np.random.default_rng(0), len(data.y)
    stimuli = np.arange(n) // 9
    y, more, name, expected = {
        'value': (rng.normal(size=(n, 1)), {}, 'median', lambda y: f'{np.median(y):.4g}'),
        'labels': ((rng.random((n, 3)) > 0.5) * 1.0, {'classes': ('a', 'b', 'c')}, 'class b', lambda y: y[:, 1].sum()),
        'embedding': (stimuli, {'vectors': rng.normal(size=(n, 8))}, 'stimuli', lambda y: len(set(y))),
        'keystrokes': (rng.integers(-1, 2, (n, 4)), {'classes': ('a', 'b', '')}, 'keys', lambda y: (y >= 0).sum()),
    }[kind]
    other = dataclasses.replace(data, kind=kind, y=y, **more)
    counts, train = dataset_facts._counts(few.dataset, other), other.rows('train')
    assert counts[name]['train'] == expected(y[train]) and counts['windows']['train'] == len(train)
    left = dataset_facts._counts(
        few.dataset, dataclasses.replace(other, split=np.where(np.arange(n) < 7, '', data.split))
    )
    assert left['windows']['in no part'] == 7 and left[name]['in no part'] == '-'
    if kind == 'labels':  # of which no window has one
        assert set(figures._groups(few.dataset, dataclasses.replace(other, y=0 * y), train)) == {'all windows'}
    for _, draw in figures.of_windows(few, other).values():
        assert figures.png(draw, '').startswith(b'\x89PNG')


def test_a_file_that_is_refused_now_is_named(monkeypatch):
    wrong = Finding('there', 'finite samples', 'nan', 'numbers', 'fetch it again')
    monkeypatch.setattr(dataset_facts, 'source_of', lambda dataset: SimpleNamespace(read=lambda ref: wrong))
    ref = RecordingRef('SimulatedP3', 'S01', '0', '0', ())
    with pytest.raises(RequestError, match=r'S01.*now can not: finite samples, found nan'):
        dataset_facts._read(cell().dataset, ref)


def test_without_matplotlib_nothing_is_done_and_the_way_to_it_is_said(few, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dataset_facts, 'find_spec', lambda name: None)
    with pytest.raises(MissingExtraError):
        dataset_facts.require()
    assert run.main([*ASK, f'--workdir={tmp_path}']) == 2
    assert "needs matplotlib, which is not installed: pip install 'jbench[report]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_check_goes_without_training(tmp_path, capsys):
    assert run.main(['--task=p3', '--stage=check,train', f'--workdir={tmp_path}']) == 2
    assert 'check shows the data alone' in capsys.readouterr().err


@pytest.mark.slow
def test_one_subject_is_shown_before_its_split_is_judged(few, tmp_path, monkeypatch, capsys):
    """The facts are there, the split is refused, and the change that the message names is one that works."""
    known = select.datasets()
    alone = dataclasses.replace(few.dataset, n_subjects=1, n_recordings=1)
    monkeypatch.setattr(select, 'datasets', lambda: {**known, alone.name: alone})
    ask = [*ASK, f'--workdir={tmp_path}']
    assert run.main(ask) == 2
    out, err = capsys.readouterr()
    assert 'subjects    1 present' in out and re.search(r'class Target +[1-9]', out) and 'in no part' in out
    assert "a split by 'subject' needs at least 3 groups" in out.partition('findings:')[2]
    page = Path(re.search(r'page: (.*)\n', out)[1])
    assert re.findall('src="(.*?)"', page.read_text()) == ['amplitude.png', 'spectrum.png']
    assert "a split by 'subject' needs at least 3 groups" in err
    changes = re.findall(r'(--set) (split\.\S+)', err)
    assert changes and run.main([*ask, *(word for change in changes for word in change)]) == 0
    assert re.search(r'windows +\d+ +\d+ +\d+\n', capsys.readouterr().out)
