"""The page of a dataset: what is drawn is what the CSV says."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import cut, words
from matplotlib.collections import PathCollection
from small import cell, prepared

from jbench.report.dataset import figures
from jbench.report.figures import dataset, head


@pytest.fixture(scope='module')
def found(tmp_path_factory):
    return dataset.seen(cell(), prepared(tmp_path_factory.mktemp('set')))


@pytest.fixture(scope='module')
def page(found):
    return dataset.page(found, title='p3, simulated')


@pytest.fixture(scope='module')
def rows(found):
    return dataset.rows(found)


def test_averages(found, page, rows):
    assert len(found.averages) == 2
    for n, of in enumerate(found.averages):
        mine = [row for row in rows if row['panel'] == of.label]
        for ax in page.subfigs[n].axes:
            channel = ax.get_title()
            curves = {line.get_label().split(' (')[0]: line for line in ax.lines if line.get_label()[0] != '_'}
            assert set(curves) == set(of.groups) == {'Target', 'NonTarget'}
            for group, line in curves.items():
                here = [(r['at'], r['value']) for r in mine if (r['class'], r['channel']) == (group, channel)]
                assert np.array_equal(np.array(here, np.float32), line.get_xydata().astype(np.float32)), channel


def test_amplitudes(found, page, rows):
    ax = page.subfigs[2].axes[0]
    mine = [row for row in rows if row['panel'] == 'amplitude']
    (dots,) = (line for line in ax.lines if line.get_label() == '_median')
    assert dots.get_ydata().tolist() == [row['value'] for row in mine]
    ends = [segment[:, 1].tolist() for segment in ax.collections[0].get_segments()]
    assert ends == [[row['low'], row['high']] for row in mine]
    assert [row['channel'] for row in mine] == [t.get_text() for t in ax.get_xticklabels()]
    x = found.averages[0].x.std(2)
    assert [row['value'] for row in mine] == pytest.approx(np.median(x, 0).tolist())


def test_topographies(found, page, rows):
    of, mine = found.averages[0], [row for row in rows if row['panel'] == 'topography']
    drawn = []
    for ax in page.subfigs[3].axes:
        for dots in (c for c in ax.collections if type(c) is PathCollection):
            places = dots.get_offsets().tolist()
            drawn += [(x, y, v) for (x, y), v in zip(places, dots.get_array().tolist(), strict=True)]
    assert drawn == [(row['x'], row['y'], row['value']) for row in mine] and len(mine) == 2 * len(of.ch_names)
    total = {c: sum(r['value'] for r in mine if r['channel'] == c) for c in of.ch_names}
    assert max(map(abs, total.values())) < 1e-5  # each class less the mean of both
    seconds = float(found.at.split()[-2])
    assert 0.2 < seconds < 0.7 and found.at.endswith(' s')  # of a P3
    target = {r['channel']: r['value'] for r in mine if r['class'] == 'Target'}
    assert max(target, key=target.get) in ('Pz', 'CPz', 'Cz', 'P3', 'P4', 'POz')


@pytest.mark.slow
def test_words_and_edges(page):
    told = words(page).replace('\n', ' ')
    for text in ('p3, simulated', 'training windows', 'Mean window of each class', 'Mean spectrum', 'Amplitude', 'IQR'):
        assert text in told
    assert not cut(page)


def test_places_on_the_head():
    known, xy = head.places(['Cz', 'nothing', 'Oz', 'T7', 'T8', 'Fpz'])
    assert known.tolist() == [0, 2, 3, 4, 5]
    cz, oz, t7, t8, fpz = xy
    assert np.hypot(*cz) < 0.2 and oz[1] < -0.5 and fpz[1] > 0.5 and t7[0] < -0.5 and t8[0] > 0.5
    assert abs(t7[0] + t8[0]) < 0.05
    assert head.places(['v1', 'v2'])[1].shape == (0, 2)


def test_few_or_unknown_places_give_no_head(found):
    of = found.averages[0]
    few = of._replace(x=of.x[:, :3], ch_names=of.ch_names[:3])
    assert dataset.topography_rows(few) == ([], '', '')
    other = found._replace(averages=(few,), topography=[], amplitude=dataset.amplitude_rows(few))
    assert len(dataset.page(other, title='x').subfigs) == 2


@pytest.mark.parametrize('line', [True, False])
def test_channels_in_a_line_are_dots(line):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    xy = np.stack([np.linspace(-0.5, 0.5, 9), np.zeros(9) if line else np.linspace(-0.5, 0.5, 9) ** 2], 1)
    dots = head.draw(ax, xy, np.arange(9.0), (0, 8), 'viridis')
    assert dots.get_array().tolist() == list(range(9)) and dots.get_clim() == (0, 8)
    assert len(ax.collections) == 2 - line


def test_one_class_and_one_sample():
    x = np.random.default_rng(0).normal(size=(20, 5, 1)).astype(np.float32)
    names = ['Cz', 'Oz', 'T7', 'T8', 'Fpz']
    of = figures.Classed(x, {'all windows': np.arange(20)}, names, np.zeros(1), 'time in the window (s)', 'µV', True)
    rows, at, unit = dataset.topography_rows(of)
    assert [row['value'] for row in rows] == pytest.approx(x.mean(0)[:, 0].tolist()) and unit == 'µV' and '0 s' in at
    seen = dataset.Seen((of,), dataset.amplitude_rows(of), 'µV', rows, at, unit, 'few')
    assert not cut(dataset.page(seen, title='x')) and len(dataset.rows(seen)) == 3 + 5 + 5
