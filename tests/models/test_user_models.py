"""One's own model from a file: a right one runs, a wrong one is refused with the reason, before anything is trained."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from jbench import run
from jbench.models import factory, user_model, validate
from jbench.models.model import Model, load, save
from jbench.plan import cells, select
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import parallel, programs

SIGNAL, N_OUT = Signal(n_chans=4, n_times=32, sfreq=120.0), 3
RIGHT = '''\
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.layers.blocks import BatchNorm, Linear, dropout
from jbench.models.model import Answer, Model, network

CALLS = []


class Net(nn.Module):
    n_chans: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch, *, train, key):
        x, mask = batch['x'], batch['mask']
        x = BatchNorm(self.n_chans, axis_name=self.axis_name)(x.transpose(1, 0, 2), mask, train=train)
        h = jnp.log(jnp.square(x).mean(-1) + 1e-3).T
        h = dropout(h, 0.25, key, self.axis_name, batch_axis=0)
        return Linear(self.n_chans, self.n_out)(h)


def net(signal, n_out, *, axis_name=None):
    """Power of each channel."""
    return network(Net(signal.n_chans, n_out, axis_name), signal)
'''
POWER = '''\
"""Nearest mean of log power."""
import numpy as np


def power(data):
    features = lambda x: np.log(x[:].var(-1) + 1e-6)
    f = features(data.train.x)
    means = np.stack([f[data.train.y == k].mean(0) for k in range(data.n_out)])
    return lambda test: -np.linalg.norm(features(test)[:, None] - means, axis=-1)
'''


def model_in(folder: Path, source: str, name: str = 'net') -> str:
    """The text for --model of a function in a file."""
    path = folder / 'mine.py'
    path.write_text(source)
    return f'{path}:{name}'


def built(text: str) -> Model:
    return programs.build(user_model.find(text), SIGNAL, N_OUT)


# ---- what is refused ----

HEAD = 'return Linear(self.n_chans, self.n_out)(h)'
LAST = 'return network(Net(signal.n_chans, n_out, axis_name), signal)'
BY_HAND = """\
def init(key):
        return {'params': {'w': jax.random.normal(key, (signal.n_chans, n_out))}, 'batch_stats': {'n': jnp.zeros(1)}}

    def apply(variables, batch, *, train, key):
        return Answer(batch['x'].mean(-1) @ variables['params']['w'], %s)

    return Model(init, apply)"""
WRONG = {  # name -> (what of the right one, becomes what, words of the reason)
    'width': (HEAD, HEAD + '[:, :2]', 'evaluation gives float32 [6, 2]; expected float [6, 3], [windows, n_out]'),
    'rows': (HEAD, HEAD + '.mean(0)', 'evaluation gives float32 [3]; expected float [6, 3]'),
    'type': (HEAD, HEAD + '.argmax(1, keepdims=True) * jnp.ones(3, int)', 'evaluation gives int32 [6, 3]'),
    'probabilities': (
        HEAD,
        HEAD.replace('return ', 'return jax.nn.softmax(') + ')',
        'its outputs are probabilities (in 0..1, and each row sums to 1), and the loss takes them for logits; return',
    ),
    'nan': ('+ 1e-3', '- 10', 'values of the outputs in evaluation are not finite; guard'),
    'nan in training': (HEAD, f'h = h / (0 if train else 1)\n        {HEAD}', 'of the outputs in training are not'),
    'gradient': (HEAD, f'h = h + jnp.sqrt(0 * h)\n        {HEAD}', 'BatchNorm_0.bias are not finite'),
    'statistics of padding': ('mask, train=train', 'mask | True, train=train', '(it ignores mask); leave them out of'),
    'mean with padding': (HEAD, f'h = h - train * h.mean(0)\n        {HEAD}', 'training depends on rows whose mask'),
    'evaluation with padding': (HEAD, f'h = h - h.mean(0)\n        {HEAD}', 'evaluation depends on rows whose mask'),
    'other windows': (
        HEAD,
        f'h = h - (h * mask[:, None]).sum(0) / mask.sum()\n        {HEAD}',
        'evaluation of a window depends on the other windows of its batch; use running statistics',
    ),
    'place in the batch': (HEAD, HEAD + ' + jnp.arange(len(x[0]))[:, None]', 'depends on the other windows of its'),
    'counter': (HEAD, f'CALLS.append(0)\n        {HEAD} * len(CALLS)', 'it depends on the order of calls'),
    'numpy.random': (HEAD, f'h = h + train * np.random.normal()\n        {HEAD}', 'it depends on the order of calls'),
    'counter of what is built': (
        LAST,
        'CALLS.append(0)\n    order = len(CALLS)\n    '
        + BY_HAND.replace("['w'],", "['w'] * order,") % "variables['batch_stats']",
        'it depends on the order of calls',
    ),
    'callback': (
        HEAD,
        f'{HEAD} + jax.pure_callback(lambda: CALLS.append(0) or np.float32(len(CALLS)), jnp.zeros(()))',
        'it depends on the order of calls',
    ),
    'other variables': (
        HEAD,
        f"CALLS.append(0)\n        self.param('n', nn.initializers.constant(len(CALLS)), (1,))\n        {HEAD}",
        'init draws other variables from the same key',
    ),
    'half': (
        HEAD,
        f"self.param('n', lambda key: jnp.zeros(2, jnp.bfloat16))\n        {HEAD}",
        'parameter n is bfloat16; what is',
    ),
    'six rows': (HEAD, f'h = h + jnp.zeros((6, 1))\n        {HEAD}', 'incompatible shapes for broadcasting: (64'),
    'integer': (HEAD, f"self.param('n', lambda key: jnp.arange(2))\n        {HEAD}", 'parameter n is int32; what is'),
    'state that grows': (
        HEAD,
        f"self.variable('batch_stats', 'n' * (1 + train), jnp.zeros, 2)\n        {HEAD}",
        'training gives a state of other structure, shape or type (nn); expected that',
    ),
    'state that changes': (LAST, BY_HAND % "{'n': 1 + variables['batch_stats']['n']}", 'evaluation changes the state'),
    'state of another type': (LAST, BY_HAND % "{'n': jnp.zeros(1, int)}", 'evaluation gives a state of other'),
    'no state': (
        LAST,
        (BY_HAND % '{}').replace(", 'batch_stats': {'n': jnp.zeros(1)}", ''),
        "init gives ['params']; expec",
    ),
    'collections': (
        HEAD,
        f"self.variable('cache', 'n', jnp.zeros, 2)\n        {HEAD}",
        "init gives ['batch_stats', 'cache', 'params']; expected {'params': ..., 'batch_stats': ...}; running",
    ),
    'two values': (
        LAST,
        BY_HAND.replace('Answer(', '(') % "variables['batch_stats']",
        'apply returns 2 values; return jbench.models.model.Answer(outputs, batch_stats)',
    ),
    'one value': (LAST, BY_HAND.replace(', %s)', ')').replace('Answer(', '('), 'apply returns an array; return'),
    'features': (
        HEAD,
        f"self.sow('features', 'mean', h.mean())\n        {HEAD}",
        "feature 'mean' is []; expected [6, ...], windows first",
    ),
    "flax's own norm": (
        HEAD,
        f'h = nn.BatchNorm(use_running_average=not train)(h)\n        {HEAD}',
        'training depends on rows whose mask is False (it ignores mask)',
    ),
    'module': (LAST, 'return Net(signal.n_chans, n_out, axis_name)', 'the function returned a Net; expected jbench.mo'),
    'factory raises': (LAST, "raise LookupError('no layer')", 'LookupError: no layer ('),
    'network raises': (HEAD, f'h = h + jnp.zeros(5)\n        {HEAD}', 'Incompatible shapes'),
}


@pytest.mark.slow
def test_a_right_network_is_taken(tmp_path):
    assert built(model_in(tmp_path, RIGHT))
    assert [p.name for p in tmp_path.iterdir()] == ['mine.py']  # nothing is left beside it
    by_hand = RIGHT.replace(LAST, BY_HAND % "variables['batch_stats']")
    assert built(model_in(tmp_path, by_hand.replace(', *, axis_name=None', '')))


@pytest.mark.parametrize('name', WRONG)
def test_a_wrong_network_is_refused_with_the_reason(name, tmp_path):
    old, new, words = WRONG[name]
    assert RIGHT.count(old) == 1
    with pytest.raises(RequestError) as refused:
        built(model_in(tmp_path, RIGHT.replace(old, new)))
    assert str(refused.value).startswith(f'model net@{user_model.find(str(tmp_path / "mine.py:net")).name[4:]}')
    assert words in str(refused.value)
    if 'raises' in name:
        line = 1 + RIGHT[: RIGHT.index(old)].count('\n')
        assert f'mine.py, line {line})' in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize('last', ['log_softmax', 'sigmoid'])
def test_what_is_no_distribution_over_classes_is_let_through(last, tmp_path):
    assert built(model_in(tmp_path, RIGHT.replace(HEAD, HEAD.replace('return ', f'return jax.nn.{last}(') + ')')))


@pytest.mark.slow
@pytest.mark.parametrize('synchronised', [True, False])
def test_batch_statistics_of_one_device_are_refused_on_several(synchronised, tmp_path):
    """A batch split in two gives what it gives whole, or the network is refused."""
    inside = 'Net(signal.n_chans, n_out, axis_name)'
    source = RIGHT if synchronised else RIGHT.replace(inside, inside.replace('axis_name', 'None'))
    make = partial(factory(user_model.find(model_in(tmp_path, source))), SIGNAL, N_OUT, axis_name=parallel.AXIS)
    refused = (
        contextlib.nullcontext() if synchronised else pytest.raises(RequestError, match='split over devices; take')
    )
    with refused:
        validate.check(make, 'net', SIGNAL, N_OUT, parallel.AXIS, several=True)


@pytest.mark.slow
def test_a_network_that_draws_by_itself_is_refused_a_microbatch(tmp_path):
    """Each part would draw the same. One that draws by blocks need not know of the devices for it."""
    norm = 'BatchNorm(self.n_chans, axis_name=self.axis_name)(x.transpose(1, 0, 2), mask, train=train)'
    drawn = 'dropout(h, 0.25, key, self.axis_name, batch_axis=0)'
    by_itself = 'h if key is None else jnp.where(jax.random.bernoulli(key, 0.75, h.shape), h / 0.75, 0)'
    plain = RIGHT.replace(norm, 'x.transpose(1, 0, 2)')
    assert norm in RIGHT and drawn in plain
    for by in (drawn, drawn.replace('self.axis_name', 'None')):
        spec = user_model.find(model_in(tmp_path, plain.replace(drawn, by)))
        assert programs.build(spec, SIGNAL, N_OUT, Recipe(microbatch=32))
    spec = user_model.find(model_in(tmp_path, plain.replace(drawn, by_itself)))
    for recipe in (Recipe(), Recipe(microbatch=64)):
        assert programs.build(spec, SIGNAL, N_OUT, recipe)
    with pytest.raises(RequestError, match=r'draws something else when recipe.microbatch .*; draw by blocks'):
        programs.build(spec, SIGNAL, N_OUT, Recipe(microbatch=32))


@pytest.mark.slow
def test_weights_travel_under_their_own_names(tmp_path):
    model = built(model_in(tmp_path, RIGHT))
    variables = model.init(jax.random.key(1))
    save(model, variables, tmp_path / 'w.safetensors')
    back = load(model, tmp_path / 'w.safetensors')
    assert jax.tree.all(jax.tree.map(np.array_equal, variables, back))
    weights = model.to_torch(variables)
    assert weights['batch_stats.BatchNorm_0.mean'].shape == (4,)
    weights['params.Linear_0.weight'] = weights.pop('params.Linear_0.bias')
    with pytest.raises(RequestError) as refused:
        model.from_torch(weights)
    assert 'missing: params.Linear_0.bias [3]' in str(refused.value)
    assert 'params.Linear_0.weight is [3], expected [3, 4]' in str(refused.value)
    without = (BY_HAND % '{}').replace("{'n': jnp.zeros(1)}", '{}')
    by_hand = built(model_in(tmp_path, RIGHT.replace(LAST, without)))
    weights = by_hand.to_torch(by_hand.init(jax.random.key(1)))
    assert list(weights) == ['params.w'] and by_hand.from_torch(weights)['batch_stats'] == {}


# ---- which file, which function ----

TEXTS = {  # name -> (text for --model, words of the reason); {dir} holds mine.py
    'no file': ('{dir}/other.py:net', 'other.py: no such file or directory'),
    'a folder': ('{dir}:net', 'is a directory'),
    'no function': ('{dir}/mine.py', 'expected a file and a function in it, as path/to/file.py:function'),
    'empty function': ('{dir}/mine.py:', 'expected a file and a function'),
    'of Windows': (r'C:\models\mine.py', 'expected a file and a function'),
    'no path': (':net', 'expected a file and a function'),
    'near': ('{dir}/mine.py:nett', "mine.py 'nett'; did you mean 'net'?"),
    'a class': ('{dir}/mine.py:Net', "did you mean 'net'?"),
}
SOURCES = {  # name -> (source, words of the reason); with what the syntax tells, before anything runs
    'syntax': ('def net(signal, n_out):\n    return (\n', 'SyntaxError: '),
    'text': ('ä'.encode('latin-1'), 'SyntaxError: '),
    'parameters': (
        'def net(x, n):\n    pass\n',
        'line 1: net(x, n) is no model; a network is a function of (signal, n',
    ),
    'one more': ('\ndef net(signal, n_out, width):\n    pass\n', 'line 2: net(signal, n_out, width) is no model'),
    'keyword': ('def net(data, *, c):\n    pass\n', 'net(data, *, c) is no model; a network is a function of'),
}
RUNS = {  # the same of a file that is no model once it runs
    'import': ('import nowhere_at_all\n', "ModuleNotFoundError: No module named 'nowhere_at_all' ("),
    'beside': ('import beside\n', 'line 1); a model is one file, those beside it are not imported'),
    'at the top': ('\n1 / 0\n', 'ZeroDivisionError: division by zero ('),
    'leaves': ('raise SystemExit(3)\n', 'SystemExit: 3 ('),
}


@pytest.mark.parametrize('name', TEXTS)
def test_a_bad_path_is_explained(name, tmp_path):
    text, words = TEXTS[name]
    model_in(tmp_path, RIGHT)
    with pytest.raises(RequestError) as refused:
        select.select_models('eegnet,' + text.replace('{dir}', str(tmp_path)))
    assert words in str(refused.value)


@pytest.mark.parametrize('name', SOURCES)
def test_a_file_that_holds_no_model_is_explained(name, tmp_path):
    source, words = SOURCES[name]
    path = tmp_path / 'mine.py'
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    with pytest.raises(RequestError) as refused:
        user_model.find(f'{path}:net')
    assert words in str(refused.value) and str(path) in str(refused.value)


@pytest.mark.parametrize('name', RUNS)
def test_a_file_that_fails_is_explained(name, tmp_path):
    """It is found, since finding runs nothing."""
    source, words = RUNS[name]
    (tmp_path / 'beside.py').write_text('')
    text = model_in(tmp_path, source + 'def net(signal, n_out):\n    pass\n')
    with pytest.raises(RequestError) as refused:
        factory(user_model.find(text))
    assert words in str(refused.value)
    assert f'mine.py, line {2 if name == "at the top" else 1})' in str(refused.value)


def test_what_a_text_names(tmp_path, monkeypatch):
    text = model_in(tmp_path, RIGHT + POWER)
    net, eegnet, power = (p.spec for p in select.select_models(f'{text}, eegnet, {tmp_path}/mine.py:power'))
    assert (net.kind, power.kind, net.title) == ('network', 'estimator', 'Power of each channel.')
    assert net.family == power.family == 'user' and eegnet.family == 'classic'
    assert net.name[:4] == 'net@' and net.name[4:] == power.name[6:] and len(net.name) == 12
    monkeypatch.chdir(tmp_path)
    odd = tmp_path / "it's a: ü" / 'x.y.py'
    odd.parent.mkdir()
    odd.write_text(RIGHT + POWER)
    monkeypatch.setenv('HOME', str(tmp_path))
    for same in ('mine.py:net', './mine.py:net', '~/mine.py:net', f'{odd}:net'):
        assert user_model.find(same).name == net.name
    (tmp_path / 'mine.py').write_text(RIGHT)
    assert user_model.find('mine.py:net').name != net.name
    with pytest.raises(RequestError, match='changed while the command ran; run it again'):
        factory(net)


@pytest.mark.slow
def test_a_file_runs_once_in_a_process(tmp_path):
    counted = "import pathlib\npathlib.Path(__file__).with_name('runs').open('a').write('x')\n"
    spec = user_model.find(model_in(tmp_path, counted + RIGHT))
    for _ in range(2):
        programs.build(spec, SIGNAL, N_OUT)
    assert (tmp_path / 'runs').read_text() == 'x'


# ---- the command ----


@pytest.fixture(scope='module')
def work(tmp_path_factory):
    """A work folder that the tests share, so that windows are prepared once."""
    return tmp_path_factory.mktemp('work')


@pytest.fixture
def ask(work, monkeypatch, capsys):
    """Run the command on p3 of six simulated subjects: exit status, results of own models, what it said."""
    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)

    def answer(model: str, workdir: Path = work) -> tuple[int, list[Path], str]:
        status = run.main(['--task=p3', f'--model={model}', '--debug', '--seeds=33', f'--workdir={workdir}'])
        found = sorted(workdir.glob(f'results/*/*/{user_model.find(model.partition(",")[0]).name}/*/seed33.json'))
        return status, found, capsys.readouterr().err

    return answer


@pytest.mark.slow
def test_a_network_runs_and_its_results_are_those_of_its_file(ask, tmp_path):
    text = model_in(tmp_path, RIGHT)
    before = user_model.find(text)
    status, (path,), said = ask(f'{text},dummy')
    result = json.loads(path.read_text())
    assert status == 0 and 'finished before' not in said
    assert result['model'] == before.name and len(result['history']) == 2
    assert result_file.verify(path) == [] and str(tmp_path) not in path.read_text()
    (tmp_path / 'elsewhere').mkdir()
    status, found, said = ask(model_in(tmp_path / 'elsewhere', RIGHT))
    assert (status, found) == (0, [path]) and 'finished before, nothing to compute' in said
    edited = user_model.find(model_in(tmp_path, RIGHT.replace('0.25', '0.5')))
    ((task, dataset),) = select.select_tasks('p3/SimulatedP3')
    keys = [Cell(task=task, dataset=dataset, model=spec).key for spec in (before, edited)]
    assert edited.name != before.name and keys[0] != keys[1]


@pytest.mark.parametrize('name', ['rows', 'statistics of padding', 'factory raises'])
def test_a_wrong_network_leaves_nothing(name, ask, tmp_path):
    """The whole request is refused, before anything is prepared."""
    old, new, _ = WRONG[name]
    status, found, said = ask(model_in(tmp_path, RIGHT.replace(old, new)) + ',dummy', tmp_path / 'work')
    assert (
        (status, found) == (2, []) and 'Traceback' not in said and said.splitlines()[-1].startswith('jbench: model net')
    )
    assert {p.name for p in (tmp_path / 'work').glob('*')} <= {'xla'}


def test_only_what_the_facts_tell_is_tried_before_the_data(tmp_path):
    """Which channels a pick leaves is known with the data: a network for two of them is not tried with all."""
    two = f'if signal.n_chans != 2:\n        raise LookupError(str(signal.n_chans))\n    {LAST}'
    spec = user_model.find(model_in(tmp_path, RIGHT.replace(LAST, two)))
    ((task, dataset),) = select.select_tasks('p3/SimulatedP3')
    picked = cells.apply(task, dataset, (('signal.picks', 'Cz,Pz'),))
    ahead = programs.Compiler()
    ahead.foresee([Cell(task=picked, dataset=dataset, model=spec)])
    ahead.close()
    with pytest.raises(RequestError, match='LookupError: 16'):
        ahead.foresee([Cell(task=task, dataset=dataset, model=spec)])


@pytest.mark.parametrize('weights, changes', [('1a2b', ()), ('none', (('recipe.adaptation', 'probe'),)), ('none', ())])
def test_a_network_that_says_no_head_is_refused_where_one_is_asked_for(tmp_path, weights, changes):
    """Before the data, as far as the facts tell how it is built; one that calls its last layer so is taken."""
    ((task, dataset),) = select.select_tasks('p3/SimulatedP3')
    for source, refused in ((RIGHT, True), (RIGHT.replace(LAST, f'{LAST[:-1]}, head=("params.Linear_0",))'), False)):
        spec = dataclasses.replace(user_model.find(model_in(tmp_path, source)), weights=weights)
        cell = Cell(task=cells.apply(task, dataset, changes), dataset=dataset, model=spec)
        told = pytest.raises(RequestError, match=f'^model {spec.name}: .* not known what its head is')
        with told if refused and (weights, changes) != ('none', ()) else contextlib.nullcontext():
            programs.require_heads([cell])


LINE = 'return lambda test: -np.linalg.norm(features(test)[:, None] - means, axis=-1)'
ESTIMATORS = {  # name -> (line that becomes another, exit status, words)
    'right': (LINE, 0, ''),
    'width': (
        LINE + '[:, :1]',
        2,
        'expected finite numbers [192, 2] ([windows, n_out]) as its outputs on the test part',
    ),
    'nan': (LINE + ' * np.nan', 2, 'got float32 [192, 2], not all finite'),
    'nothing': ('pass', 2, 'an estimator returns a function of windows -> outputs [N, n_out], got a NoneType'),
    'raises': (LINE.replace('means,', 'means[:, :3],'), 2, 'ValueError: operands could not be broadcast'),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', ESTIMATORS)
def test_an_estimator(name, ask, tmp_path):
    line, wanted, words = ESTIMATORS[name]
    status, found, said = ask(model_in(tmp_path, POWER.replace(LINE, line), 'power'))
    assert (status, len(found)) == (wanted, int(wanted == 0)) and words in said and 'Traceback' not in said
    assert 'mine.py, line 9)' in said or name != 'raises'


def test_an_estimator_whose_file_fails_leaves_nothing(ask, tmp_path):
    status, found, said = ask(model_in(tmp_path, 'import nowhere_at_all\n' + POWER, 'power'), tmp_path / 'work')
    assert (status, found) == (2, []) and 'mine.py, line 1)' in said
    assert {p.name for p in (tmp_path / 'work').glob('*')} <= {'xla'}


def test_info_of_a_file(tmp_path, capsys):
    assert run.main([f'--info={model_in(tmp_path, RIGHT)}']) == 0
    assert ['title', 'Power of each channel.'] in [
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    ]
