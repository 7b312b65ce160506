"""Options of a model on the command line: read without running anything, typed, part of name and key."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import pytest
from families import params
from shapes import fitting

from jbench import run
from jbench.models import MODELS, factory, options, user_model
from jbench.models.layers import blocks
from jbench.plan import cell_file, cells, select
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import Recipe
from jbench.train import programs

SIGNAL = Signal(n_chans=4, n_times=128, sfreq=128.0)
MINE = """
import numpy as np
raise SystemExit('a file of the user runs no earlier than its model is built')
def power(data, low: float = 8, bands=3, log=True, name='alpha', grid=(1, 2), edge: float | None = None, n: int = 2**3):
    return lambda x: np.zeros((len(x), data.n_out))
"""


def spec(text: str):
    """The one model that a text of --model names."""
    ((found, _),) = select.select_models(text)
    return found


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('eegnet', ('eegnet', {})),
        ('eegnet:dropout=0.5', ('eegnet', {'dropout': '0.5'})),
        ('eegnet:dropout=0.5:reference_init=yes', ('eegnet', {'dropout': '0.5', 'reference_init': 'yes'})),
        ('a=b/mine.py:net', ('a=b/mine.py:net', {})),
        ('mine.py:net:how=a=b', ('mine.py:net', {'how': 'a=b'})),
    ],
)
def test_options_stand_behind_the_model(text, expected):
    assert options.split(text) == expected


def test_an_option_is_in_name_and_key_unless_it_is_the_default():
    plain, other = spec('eegnet'), spec('eegnet:dropout=.50')
    assert spec('EEGNet:dropout=0.25') == plain == MODELS['eegnet']
    assert (other.full_name, other.options) == ('eegnet:dropout=0.5', (('dropout', 0.5),))
    several = select.select_models('eegnet:dropout=.1,eegnet,EEGNet:dropout=0.10')
    assert [m.full_name for m, _ in several] == ['eegnet:dropout=0.1', 'eegnet']


def test_the_network_is_built_with_its_options_beside_those_that_were_published(monkeypatch):
    given = []
    monkeypatch.setattr(programs, 'factory', lambda model: lambda *a, **k: given.append(k))
    programs.build(spec('eegnet:dropout=0'), SIGNAL, 3)
    programs.build(spec('eegnet:dropout=0'), SIGNAL, 3, Recipe(published=True))
    for k in given:
        del k['axis_name']
    assert given == [{'dropout': 0.0}, {'dropout': 0.0, 'reference_init': True}]


@pytest.mark.parametrize('model', params(m for m in MODELS.values() if 'dropout' in options.defaults(m)))
def test_the_rate_of_dropout_reaches_the_network(model, monkeypatch):
    name = model.name
    rates = []
    monkeypatch.setattr(blocks, 'dropout', lambda x, rate, *_, **__: rates.append(rate) or x)
    chosen = options.with_options(MODELS[name], {'dropout': 0.125})
    signal = fitting(MODELS[name], 188)
    model = factory(chosen)(signal, 2, **dict(chosen.options))
    batch = {'x': jnp.ones((3, signal.n_chans, signal.n_times)), 'mask': jnp.ones(3, bool)}

    def train(key):
        return model.apply(model.init(key), batch | model.precompute(batch['x']), train=True, key=key)[0]

    jax.eval_shape(train, jax.random.key(0))
    assert 0.125 in rates
    assert options.defaults(MODELS[name])['dropout'] not in {*rates}


def test_eight_networks_have_a_rate_of_dropout():
    assert sum('dropout' in options.defaults(m) for m in MODELS.values() if m.family == 'classic') == 9


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('eegnet:dropuot=.5', "unknown option of eegnet 'dropuot'; did you mean 'dropout'"),
        ('eegnet:dropout=much', '--model: eegnet:dropout=much: expected a number, as its default, 0.25'),
        ('eegpt:remat=maybe', '--model: eegpt:remat=maybe: expected yes or no or none, as its default, none'),
        ('classic:dropout=.5', 'options belong to one model, classic is a group'),
        ('dummy:x=1', 'dummy has no options'),
        ('chance:dropout=.5', 'chance has no options'),
        ('eegnet:reference_init=no', "unknown option of eegnet 'reference_init'"),  # version 1 of a task sets it
        ('eegnet:dropout', 'options are name=value, as in eegnet:dropout=0.5; it has: dropout'),
        ('eegnet:dropout=.5:dropout=.6', 'an option is given twice'),
    ],
)
def test_a_wrong_option_is_refused(text, message):
    with pytest.raises(RequestError, match=message):
        select.select_models(text)


def test_a_rate_that_is_none_is_refused_when_the_network_is_built():
    with pytest.raises(RequestError, match=r'eegnet: dropout=1\.0: expected a rate from 0 to below 1'):
        programs.build(spec('eegnet:dropout=1'), SIGNAL, 3)


def test_options_of_ones_own_file_are_read_without_running_it(tmp_path):
    (tmp_path / 'mine.py').write_text(MINE)
    mine = spec(f'{tmp_path}/mine.py:power:low=4:bands=5')
    assert options.defaults(mine) == {
        **{'low': 8.0, 'bands': 3, 'log': True, 'name': 'alpha'},
        **{'edge': None, 'n': None},
    }
    assert spec(f'{tmp_path}/mine.py:power:low=8.0:edge=none').options == ()
    assert spec(f'{tmp_path}/mine.py:power:low=.5:edge=2:n=8').options == (('edge', 2.0), ('low', 0.5), ('n', 8))
    assert mine.options == (('bands', 5), ('low', 4.0))
    assert mine.name == user_model.find(f'{tmp_path}/mine.py:power').name
    with pytest.raises(RequestError, match=r'bands=2\.5: expected a whole number, as its default, 3'):
        spec(f'{tmp_path}/mine.py:power:bands=2.5')


@pytest.mark.slow
def test_a_run_with_an_option_says_it_and_its_result_runs_again(tmp_path):
    (tmp_path / 'mine.py').write_text(
        'import numpy as np\ndef one(data, which: int = 0):\n'
        '    return lambda x: np.tile(np.eye(data.n_out)[which], (len(x), 1))\n'
    )
    found = [
        run.results('p3', f'{tmp_path}/mine.py:one{more}', seeds=[33], workdir=tmp_path, simulated='yes')[0]
        for more in ('', ':which=1')
    ]
    a, b = (r['metrics']['acc'] for r in found)
    assert a != b and abs(a + b - 1) < 1e-6
    assert [r['model'].partition(':')[2] for r in found] == ['', 'which=1']
    assert found[0]['key'] != found[1]['key']
    (folder,) = (tmp_path / 'results').glob('*/*/*which_1/*')
    assert result_file.verify(folder / 'seed33.json') == []
    given = json.loads((folder / 'seed33.json').read_text())
    given['config']['model']['target'] = f'{tmp_path}/mine.py:one'
    cell = tmp_path / 'cell.json'
    cell.write_text(json.dumps(given['config']))
    assert cell_file.read(cell).key == found[1]['key']


def test_the_last_of_two_functions_of_one_name_is_meant_as_python_has_it(tmp_path):
    (tmp_path / 'mine.py').write_text(
        'def one(data, a: int = 1):\n    return None\ndef one(data, b: int = 2):\n    return None\n'
    )
    assert options.defaults(spec(f'{tmp_path}/mine.py:one')) == {'b': 2}


def test_a_long_option_has_a_folder_all_the_same(tmp_path):
    (tmp_path / 'mine.py').write_text('def one(data, where="here"):\n    return None\n')
    long = spec(f'{tmp_path}/mine.py:one:where={"x" * 300}')
    choice = cells.choose_dataset(select.select_tasks('p3')[0][0], None, None, tmp_path, 'yes')
    (cell,) = cells.make_cells([choice], [select.Pick(long, True)], ())
    assert max(map(len, result_file.result_dir(tmp_path, cell).parts)) <= 120
