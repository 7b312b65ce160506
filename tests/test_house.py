"""Nothing stands outside: every file of a folder is in a table and is tested, and imports point one way."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from each import each
from families import params
from shapes import fitting

from jbench.cli import arguments
from jbench.data.source import Source, source_of
from jbench.models import MODELS, factory
from jbench.plan import cells, select, user_files
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import TARGETS
from jbench.tasks import REVISION
from jbench.tasks.suites import SUITES

ROOT = Path(__file__).parents[1]
FAMILIES = ('classic', 'foundation', 'baselines')
SHARED = (
    # no models: what several of a family need, parts, and tables of names
    r'estimator|adapters|probes|.*_(channels|layers)'
)
EVERY = [t for versions in select.tasks().values() for t in versions]
ALL = sorted(name for name, versions in select.tasks().items() if versions[0].device == 'eeg')


# ---- completeness ----


def files(folder: str, *left_out: str) -> list[str]:
    """Names of the Python files of a folder."""
    return sorted(p.stem for p in (ROOT / folder).glob('*.py') if p.stem not in ('__init__', *left_out))


@each('name', files('jbench/tasks', 'suites'))
def test_every_file_of_tasks_holds_tasks_of_one_category(name):
    found = import_module(f'jbench.tasks.{name}').TASKS
    assert {t.category for t in found} == {name}
    for task in found:
        cells.check(task)
        served = {*task.datasets, task.simulated}
        assert task.datasets and len(set(task.datasets)) == len(task.datasets)
        assert {d for d, _ in task.overrides} | {e.dataset for e in task.exclude} <= served
        assert task.simulated is None or select.datasets()[task.simulated].simulated
        for name in served & set(select.datasets()):
            cells.apply(task, select.datasets()[name], ())


def test_names_are_unique():
    assert len({(t.device, t.name, t.version) for t in EVERY}) == len(EVERY)
    known = [n.lower() for d in select.datasets().values() for n in {d.name.lower(), *map(str.lower, d.aliases)}]
    groups = {*{t.category for t in EVERY}, *SUITES, 'all'}
    assert len(set(known)) == len(known)
    assert not set(select.tasks()) & groups and not set(MODELS) & {*select.GROUPS, 'all'}


@each('dataset', select.datasets().values(), ids=lambda d: d.name)
def test_every_dataset_serves_a_task_and_says_where_it_comes_from(dataset: Dataset):
    assert any(dataset.name in (*t.datasets, t.simulated) for t in EVERY)
    assert dataset.licence and dataset.citation and dataset.host and dataset.layout and dataset.access
    assert dataset.n_subjects > 0 and dataset.n_recordings >= dataset.n_subjects and dataset.n_chans > 0
    assert dataset in import_module(dataset.source).DATASETS
    source_of(dataset)
    assert re.fullmatch(r'(10\.\d{4,9}/\S+)?', dataset.doi)
    pinned = re.search(r'physionet\.org/files/[^/]+/([^/]+)/', dataset.download.url if dataset.download else '')
    assert not pinned or dataset.revision == pinned[1]
    assert dataset.supersedes is None or all(dataset.supersedes)


@pytest.mark.parametrize('name', files('jbench/data/sources'))
def test_every_source_has_what_the_protocol_asks(name):
    module = import_module(f'jbench.data.sources.{name}')
    source_of(dataclasses.replace(select.datasets()['SimulatedP3'], source=module.__name__))
    for function, wanted in {'recordings': Source.recordings, 'read': Source.read}.items():
        asked = inspect.signature(wanted, eval_str=False).parameters
        given = inspect.signature(getattr(module, function), eval_str=False)
        assert list(given.parameters) == list(asked)[1:]
        assert [p.annotation for p in given.parameters.values()] == [p.annotation for p in asked.values()][1:]
    more = {'fetch': 4, 'vectors': 2}  # arguments
    for function, n in more.items():
        assert not hasattr(module, function) or len(inspect.signature(getattr(module, function)).parameters) == n


@pytest.mark.parametrize('task', EVERY, ids=lambda t: f'{t.full_name}@{t.version}')
def test_a_version_says_what_it_corrects_and_the_first_what_it_was_read_from(task):
    versions = [t.version for t in select.tasks()[task.full_name]]
    assert versions == list(range(1, len(versions) + 1))
    if task.version == 1:
        assert task.supersedes is None
        read = task.category.startswith('challenge') or task.category in ('ieeg', 'libribrain2025')  # from others' code
        ours = task.category in ('open_sets', 'pretrain') or task.full_name == 'ieeg/film'
        assert task.revision == REVISION or (not task.revision if ours else read and bool(task.revision))
    else:
        old, why = task.supersedes
        assert old in versions and old < task.version and 10 < len(why) <= 200 and '\n' not in why


@each('model', [m for m in MODELS.values() if m.kind == 'network'], ids=lambda m: m.name)
def test_the_shortest_window_of_a_network_is_in_the_table(model):
    def build(n_times: int):
        n_out = 20 if model.targets == ('angles',) else 3
        return factory(model)(dataclasses.replace(fitting(model, 1), n_times=n_times), n_out, axis_name=None)

    build(model.least_times)
    if model.least_times > 1:
        with pytest.raises(RequestError, match=f'at least {model.least_times}'):
            build(model.least_times - 1)


@each('name', [f'{family}.{n}' for family in FAMILIES for n in files(f'jbench/models/{family}')])
def test_every_file_of_a_family_is_in_its_table(name):
    family, _, file = name.partition('.')
    asked = {m.name for m in MODELS.values() if m.target.partition(':')[0] == f'jbench.models.{name}'}
    assert asked or re.fullmatch(SHARED, file)
    assert asked - {'chance'} <= {m.name for m in import_module(f'jbench.models.{family}').MODELS}


@pytest.mark.parametrize('model', params(MODELS.values()))
def test_every_model_can_be_made(model):
    module, _, factory = model.target.partition(':')
    make = getattr(import_module(module), factory)
    assert model.family in select.GROUPS and model.citation and model.title
    if model.kind == 'network':
        import jax
        import jax.numpy as jnp

        frames, moves = 'keystrokes' in model.targets, model.targets == ('angles',)  # of several times, of long windows
        signal = fitting(model, 2064 if frames or moves else 128)
        c, t = signal.n_chans, signal.n_times
        made = make(signal, 20 if moves else 3)
        variables = jax.eval_shape(made.init, jax.random.key(0))
        batch = {'x': jnp.zeros((2, c, t)), 'y': jnp.zeros(2, int), 'mask': jnp.ones(2, bool)}
        batch['id'] = jnp.arange(2)
        logits, *_ = jax.eval_shape(lambda v: made.apply(v, batch, train=False, key=None), variables)
        assert logits.shape == ((2, 2, 3) if frames else (2, 20 * t) if moves else (2, 3))


@each('name', files('configs', 'real_check'))
def test_every_config_sets_known_fields_and_its_command_is_right(name):
    path = ROOT / 'configs' / f'{name}.py'
    header = ast.get_docstring(ast.parse(path.read_text())) or ''
    commands = [text.splitlines()[0].split() for text in header.split('Command: python -m jbench.run ')[1:]]
    assert commands
    for command in commands:
        args = arguments.parse([a for a in command if not a.startswith('--data_dir')])
        assert f'configs/{name}.py' in (args.config, args.task, args.cluster, args.search)
        if args.config:
            task = select.select_tasks(args.task)[0][0]
            assert cells.apply(task, select.datasets()[task.simulated], user_files.config_overrides(str(path)))
        select.select_tasks(args.task)
        select.select_models(args.model)


@each('name', sorted(SUITES))
def test_suites_name_tasks_once(name):
    assert len(dict(SUITES[name].tasks)) == len(SUITES[name].tasks)
    assert len(SUITES['eeg-core-1.0'].tasks) == 36


# ---- direction of imports ----

LEVELS = (  # rooms; what stands further down may import what stands above it, and itself
    {'spec', 'version'},
    {'files', 'metrics', 'tasks', 'progress', 'events', 'epochs'},
    {'processes', 'targets', 'stores'},
    {'data'},
    {'models', 'context'},
    {'train'},
    {'plan', 'results'},
    {'alignment', 'challenges'},
    {'attempts', 'report', 'training', 'trained'},
    {'training_together'},
    {'grid', 'afresh'},
    {'stages', 'cli'},
    {'api', 'run', 'launch', 'submit'},
)
# what report may import
READERS = {
    'spec',
    'version',
    'files',
    'events',
    'epochs',
    'tasks',
    'data',
    'models',
    'metrics',
    'targets',
    'results',
    'plan',
    'alignment',
}
ENTRY = ROOT / 'jbench' / 'report' / '__main__.py'  # `python -m jbench.report`: the command, and nothing else
LONGEST = 300  # lines of a module
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


@cache
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


def dotted(path: Path) -> str:
    """What a file is imported as."""
    parts = path.relative_to(ROOT).with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


MODULES = {dotted(path): path for path in SOURCES}


def wanted(path: Path) -> set[str]:
    """Modules of ours that a file imports, lazily or not."""
    named = {m for m in imported(path) if m.partition('.')[0] == 'jbench'}
    return {m if m in MODULES else m.rpartition('.')[0] for m in named}


def room(module: str) -> str:
    """The folder or module of jbench that a module belongs to."""
    return module.split('.')[1] if '.' in module else ''


@each('path', SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    if path == ENTRY:
        assert wanted(path) == {'jbench.run'}
        return
    level = {name: k for k, names in enumerate(LEVELS) for name in names}
    mine, others = room(dotted(path)), {room(m) for m in wanted(path)} - {room(dotted(path))}
    if not mine:  # jbench itself
        lazy = {'jbench.api.load', 'jbench.api.task', 'jbench.run.results', 'jbench.trained.load_model'}
        lazy |= {'jbench.cli.features.features', 'jbench.cli.evaluate.evaluate'}
        assert others == {'api', 'cli', 'run', 'trained', 'version'} and not imported(path, top=True) & lazy
        return
    assert mine in level, f'{mine} is new: give it a place in LEVELS'
    assert {m: level[m] for m in others if level[m] >= level[mine]} == {}
    if mine == 'report':
        assert others <= READERS


def test_only_the_command_line_knows_its_arguments():
    named = {name for name, path in MODULES.items() if 'argparse' in imported(path)}
    assert {name for name in named if room(name) != 'cli'} == {'jbench.run'}


def test_no_two_files_of_tests_have_one_name():
    """pytest takes the second for the first."""
    names = sorted(p.name for p in (ROOT / 'tests').rglob('test_*.py'))
    assert [a for a, b in itertools.pairwise(names) if a == b] == []


def test_no_circle_of_imports():
    left = {name: wanted(path) & set(MODULES) for name, path in MODULES.items()}
    while free := {name for name, needs in left.items() if not needs & set(left)}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert left == {}


@each('path', SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_is_long(path):
    assert len(path.read_text().splitlines()) <= LONGEST


def test_tests_lie_as_the_package_does():
    for path in (ROOT / 'tests').rglob('test_*.py'):
        folder = path.parent.relative_to(ROOT / 'tests')
        assert (ROOT / 'jbench' / folder).is_dir(), f'{path}: no such folder in jbench'


@each(
    'name',
    [
        *(f'spec/{n}' for n in files('jbench/spec')),
        'spec/__init__',
        *(f'plan/{n}' for n in files('jbench/plan')),
        'run',
        'models/__init__',
        *(f'models/{n}/__init__' for n in FAMILIES),
        'cli/arguments',
        'cli/catalogue',
        'report/text',
        'data/discover',
        'data/source',
        *(f'tasks/{n}' for n in files('jbench/tasks')),
        *(f'data/sources/{n}' for n in files('jbench/data/sources')),
    ],
)
def test_what_a_list_imports_is_light(name):
    assert not {m.split('.')[0] for m in imported(ROOT / 'jbench' / f'{name}.py', top=True)} & HEAVY


# ---- one module a kind of target ----

NAMED = {  # beside spec, tasks and targets, modules that say the name of a kind, and why
    'plan.evaluations': 'trials are dealt class by class where each has a class of its own',
    'models.classic': 'the table of networks says which kinds each fits',
    'models.baselines': 'the table of baselines says which kinds each fits',
    'models.baselines.classical': 'of several labels, each gets an estimator of its own',
    'data.stimuli.embed': 'makes the vectors of stimuli, of which an embedding consists',
    'data.simulation.stimuli': 'a stream of random numbers is called so',
    'results.index': 'a field of a result is called so',
    'results.forged': 'a field of a result is called so',
    'results.record': 'a field of a result is called so',
    'report.figures.each_task': 'a field of a result is called so',
    'trained': 'a field of a result is called so',
    'cli.autopsy': 'a field of a result is called so',
}


def kinds_named(tree: ast.AST) -> set[str]:
    """Kinds of target that code tells apart: by words that are nothing else, in comparisons with a kind, in tables
    that name several, in tests of the type of a spec."""

    def words(nodes) -> set[str]:
        return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)} & set(TARGETS)

    def names(node: ast.AST) -> set[str]:
        return {getattr(n, 'id', getattr(n, 'attr', '')) for n in ast.walk(node)}

    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            found |= words([node]) & {'embedding', 'keystrokes', 'classes'}
        elif isinstance(node, ast.Compare) and 'kind' in names(node):
            found |= words(ast.walk(node))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            several = words(node.keys if isinstance(node, ast.Dict) else node.elts)
            found |= several if len(several) > 1 else set()
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == 'isinstance':
            found |= {kind for kind, spec in TARGETS.items() if spec.__name__ in names(node)}
    return found


@pytest.mark.parametrize(
    ('code', 'kinds'),
    [
        ("if data.kind == 'value': pass", {'value'}),
        ("if kind in ('labels', 'state'): pass", {'labels', 'state'}),
        ("least = {'value': 2, 'labels': 1}", {'value', 'labels'}),
        ("weights(y, 'classes')", {'classes'}),
        ('isinstance(task.target, Embedding | Value)', {'embedding', 'value'}),
        ("head['value'], table['state']", set()),
    ],
)
def test_a_switch_on_kinds_is_seen(code, kinds):
    assert kinds_named(ast.parse(code)) == kinds


def test_a_kind_of_target_is_one_module():
    found = {name.removeprefix('jbench.') for name, p in MODULES.items() if kinds_named(ast.parse(p.read_text()))}
    rooms = {'spec', 'targets', 'tasks'}
    assert {name for name in found if name.partition('.')[0] not in rooms} == set(NAMED)


@pytest.mark.parametrize('name', ['__init__', *files('jbench/targets')])
def test_targets_need_numpy_alone(name):
    found = {m.split('.')[0] for m in imported(ROOT / 'jbench' / 'targets' / f'{name}.py')}
    assert not found & (HEAVY - {'numpy'})
