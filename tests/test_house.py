"""Nothing stands outside: every file of a folder is in a table and is tested, and imports point one way."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from jbench import arguments, own_files, plan
from jbench.models import MODELS, factory
from jbench.spec import Dataset, RequestError, Signal
from jbench.tasks.suites import SUITES

ROOT = Path(__file__).parents[1]
EVERY = [t for versions in plan.tasks().values() for t in versions]
ALL = sorted(name for name, versions in plan.tasks().items() if versions[0].device == 'eeg')


# ---- completeness ----


SHARED = ('blocks', 'filters', 'network', 'torch_weights', 'own', 'trial')  # of jbench/models: no models themselves


def files(folder: str, *left_out: str) -> list[str]:
    """Names of the Python files of a folder."""
    return sorted(p.stem for p in (ROOT / folder).glob('*.py') if p.stem not in ('__init__', *left_out))


@pytest.mark.parametrize('name', files('jbench/tasks', 'suites'))
def test_every_file_of_tasks_holds_tasks_of_one_category(name):
    found = import_module(f'jbench.tasks.{name}').TASKS
    assert {t.category for t in found} == {name}
    for task in found:
        plan.check(task)
        served = {*task.datasets, task.simulated}
        assert task.datasets and len(set(task.datasets)) == len(task.datasets)
        assert {d for d, _ in task.overrides} | {e.dataset for e in task.exclude} <= served
        assert task.simulated is None or plan.datasets()[task.simulated].simulated
        for name in served & set(plan.datasets()):
            plan.apply(task, plan.datasets()[name], ())


def test_names_are_unique():
    assert len({(t.device, t.name, t.version) for t in EVERY}) == len(EVERY)
    known = [n.lower() for d in plan.datasets().values() for n in {d.name.lower(), *map(str.lower, d.aliases)}]
    groups = {*{t.category for t in EVERY}, *SUITES, 'all'}
    assert len(set(known)) == len(known)
    assert not set(plan.tasks()) & groups and not set(MODELS) & {*plan.GROUPS, 'all'}


@pytest.mark.parametrize('dataset', plan.datasets().values(), ids=lambda d: d.name)
def test_every_dataset_serves_a_task_and_says_where_it_comes_from(dataset: Dataset):
    assert any(dataset.name in (*t.datasets, t.simulated) for t in EVERY)
    assert dataset.licence and dataset.citation and dataset.host and dataset.layout and dataset.access
    assert dataset.n_subjects > 0 and dataset.n_recordings >= dataset.n_subjects and dataset.n_chans > 0
    module = import_module(dataset.source)
    assert dataset in module.DATASETS and callable(module.recordings) and callable(module.read)


@pytest.mark.parametrize('model', [m for m in MODELS.values() if m.kind == 'network'], ids=lambda m: m.name)
def test_the_shortest_window_of_a_network_is_in_the_table(model):
    def build(n_times: int):
        at = ((0.1, 0.1, 0.1),) * 8
        return factory(model)(Signal(n_chans=8, n_times=n_times, sfreq=120.0, positions=at), 3, axis_name=None)

    build(model.least_times)
    if model.least_times > 1:
        with pytest.raises(RequestError, match=f'at least {model.least_times}'):
            build(model.least_times - 1)


@pytest.mark.parametrize('name', files('jbench/models', *SHARED))
def test_every_file_of_models_is_in_the_table(name):
    assert [m for m in MODELS.values() if m.target.partition(':')[0] == f'jbench.models.{name}']


@pytest.mark.parametrize('model', MODELS.values(), ids=lambda m: m.name)
def test_every_model_can_be_made(model):
    from jbench.spec import Signal

    module, _, factory = model.target.partition(':')
    make = getattr(import_module(module), factory)
    assert model.family in plan.GROUPS and model.citation and model.title
    if model.kind == 'network':
        import jax
        import jax.numpy as jnp

        frames = 'keystrokes' in model.targets  # answers each of several, and needs long windows
        c, t = (6, 2064) if frames else (5, 128)
        positions = ((0.1, 0.2, 0.3),) * c if model.positions else ()
        made = make(Signal(n_chans=c, n_times=t, sfreq=120.0, positions=positions), 3)
        variables = jax.eval_shape(made.init, jax.random.key(0))
        batch = {'x': jnp.zeros((2, c, t)), 'y': jnp.zeros(2, int), 'mask': jnp.ones(2, bool)}
        batch['id'] = jnp.arange(2)
        logits, _ = jax.eval_shape(lambda v: made.apply(v, batch, train=False, key=None), variables)
        assert logits.shape == ((2, 2, 3) if frames else (2, 3))


@pytest.mark.parametrize('name', files('configs', 'real_check'))
def test_every_config_sets_known_fields_and_its_command_is_right(name):
    path = ROOT / 'configs' / f'{name}.py'
    header = ast.get_docstring(ast.parse(path.read_text())) or ''
    command = header.rpartition('Command: python -m jbench.run ')[2].splitlines()[0].split()
    args = arguments.parse([a for a in command if not a.startswith('--data_dir')])
    assert f'configs/{name}.py' in (args.config, args.task)
    if args.config:
        p3, dataset = plan.tasks()['p3'][-1], plan.datasets()['SimulatedP3']
        assert plan.apply(p3, dataset, own_files.config_overrides(str(path)))
    plan.select_tasks(args.task)
    plan.select_models(args.model)


@pytest.mark.parametrize('name', sorted(SUITES))
def test_suites_name_tasks_once(name):
    assert len(dict(SUITES[name].tasks)) == len(SUITES[name].tasks)
    assert len(SUITES['eeg-core-1.0'].tasks) == 36


# ---- direction of imports ----

LEVELS = (  # what stands further down may import what stands above it, and itself
    {'spec'},
    {'overrides', 'arguments', 'decisions', 'retrieval', 'sequences'},
    {'checks', 'tasks', 'data', 'metrics', 'progress'},
    {'models', 'own_files'},
    {'step', 'optim', 'plan', 'results'},
    {'checkpoint', 'parallel', 'provenance', 'xla_cache'},
    {'fit', 'compiler'},
    {'stages', 'report', 'api'},
    {'run'},
)
READERS = {'spec', 'overrides', 'tasks', 'data', 'models', 'metrics', 'results', 'plan'}  # what report may import
HEAVY = {
    'jax',
    'jaxlib',
    'flax',
    'optax',
    'orbax',
    'chex',
    'grain',
    'mne',
    'moabb',
    'numpy',
    'scipy',
    'sklearn',
    'rich',
}
SOURCES = sorted((ROOT / 'jbench').rglob('*.py'))


def imported(path: Path, top: bool = False) -> set[str]:
    """Modules that a file imports, dotted; `top`: only when it is imported itself (not in functions or for types)."""
    found = set()
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f'{node.module}.{a.name}' for a in node.names}
        guarded = isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(node.test)
        if not (top and (guarded or isinstance(node, ast.FunctionDef | ast.Lambda))):
            todo += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize('path', SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    level = {name: k for k, names in enumerate(LEVELS) for name in names}
    own = path.relative_to(ROOT / 'jbench').with_suffix('').parts[0]
    wanted = {m.split('.')[1] for m in imported(path) if m.startswith('jbench.')} - {own}
    if own == '__init__':
        assert wanted == {'api'} and not imported(path, top=True) & {'jbench.api.load', 'jbench.api.task'}
        return
    assert own in level, f'{own} is new: give it a place in LEVELS'
    assert {m: level[m] for m in wanted if level[m] >= level[own]} == {}
    if own == 'report':
        assert wanted <= READERS


@pytest.mark.parametrize(
    'name',
    [
        'spec',
        'plan',
        'run',
        'models/__init__',
        'report/catalogue',
        'report/text',
        'data/find',
        *(f'tasks/{n}' for n in files('jbench/tasks')),
        *(f'data/sources/{n}' for n in files('jbench/data/sources')),
    ],
)
def test_what_a_list_imports_is_light(name):
    assert not {m.split('.')[0] for m in imported(ROOT / 'jbench' / f'{name}.py', top=True)} & HEAVY
