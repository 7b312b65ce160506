"""From text to cells: the grammar of selections, overrides and their order, identity."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from each import each

from jbench import run
from jbench.cli import arguments
from jbench.models import MODELS
from jbench.plan import request, select, user_files
from jbench.plan.cells import Choice, apply, check, make_cells, options, parse_overrides
from jbench.spec import cell as cell_module
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.spec.identity import canonical, from_json, to_json
from jbench.spec.overrides import override, paths
from jbench.spec.task import Classes, Crop, Exclusion, Jitter, Recipe, Task, Trim, Value, Where, Window
from jbench.spec.validate import FIELDS, OF_LOSSES
from jbench.tasks import in_steps
from jbench.tasks.suites import CORE_TASKS, SUITES, Suite

BCI = ['cvep', 'mental_imagery', 'motor_execution', 'motor_imagery', 'p3', 'ssvep']
NEWEST = [f'{t}@{select.tasks()[t][-1].version}' for t in BCI]
BASELINES = [m.name for m in MODELS.values() if m.family == 'baselines']
EVERY = [t for versions in select.tasks().values() for t in versions]
P3, SIMULATED = select.tasks()['p3'][0], select.datasets()['SimulatedP3']


def names(text: str) -> list[str]:
    """A selection as name@version/dataset."""
    return [f'{t.name}@{t.version}' + (f'/{d.name}' if d else '') for t, d in select.select_tasks(text)]


# ---- selection ----


@each(
    'text, expected',
    [
        ('p3', ['p3@2']),
        ('p3@1', ['p3@1']),
        ('eeg/p3', ['p3@2']),
        ('eeg/p3@1/simulatedp3', ['p3@1/SimulatedP3']),
        ('p3/SimulatedP3', ['p3@2/SimulatedP3']),
        ('ssvep/Kalunga2016Online', ['ssvep@2/Kalunga2016Online']),
        ('ssvep/KALUNGA2016', ['ssvep@2/Kalunga2016Online']),
        ('ssvep@1/kalunga2016', ['ssvep@1/Kalunga2016Online']),
        ('motor_imagery/physionetmi', ['motor_imagery@2/Schalk2004Bci2000']),
        ('mental_arithmetic/eegmat', ['mental_arithmetic@2/Zyma2019Electroencephalograms']),
        ('internal_state', ['emotion@2', 'mental_arithmetic@2', 'mental_workload@2']),
        ('meg', ['image@2', 'typing@2']),
        ('emg/typing', ['typing@2']),
        ('bci', NEWEST),
        ('eeg/bci', NEWEST),
        ('all', [f'{v[-1].name}@{v[-1].version}' for v in select.tasks().values() if v[-1].category != 'pretrain']),
        ('ssvep,p3', ['ssvep@2', 'p3@2']),
        (' ssvep , p3 ,', ['ssvep@2', 'p3@2']),
        ('p3,bci,p3', ['p3@2', *[t for t in NEWEST if t != 'p3@2']]),
        ('eeg-core-1.0/p3', ['p3@1']),
        ('eeg-core-1.0/p3/SimulatedP3', ['p3@1/SimulatedP3']),
        ('eeg-core-1.0/mental_arithmetic/eegmat', ['mental_arithmetic@1/Zyma2019Electroencephalograms']),
        ('p3,eeg-core-1.0/p3,ssvep', ['p3@2', 'p3@1', 'ssvep@2']),
        ('eeg-core-1.0', [f'{t}@1' for t in CORE_TASKS]),
        ('jbench-core/p3', ['p3@2']),
        ('jbench-core', [f'{t}@2' for t in CORE_TASKS]),
        ('meg-1.0', ['image@1', 'typing@1']),
        ('meg-1.0/meg/typing', ['typing@1']),
    ],
)
def test_the_grammar_of_task(text, expected):
    assert names(text) == expected


@each(
    'text, says',
    [
        ('p33', "unknown task 'p33'; did you mean 'p3'"),
        ('Kalunga2016', 'is a dataset: name the task before it, as in --task=kalunga_ssvep/Kalunga2016'),
        ('motor_imagry', "did you mean 'motor_imagery'"),
        ('', "unknown task ''"),
        (',', "unknown task ','"),
        ('eeg', "unknown task 'eeg'"),
        ('meg/p3', "unknown task 'meg/p3'"),
        ('eeg/nothing', "unknown task 'eeg/nothing'"),
        ('p3@3', "task 'p3' has no version '3'; it has 1, 2"),
        ('p3@', "task 'p3' has no version ''; it has 1, 2"),
        ('p3@one', "task 'p3' has no version 'one'"),
        ('p3/SimulatedP4', "unknown dataset 'SimulatedP4'; did you mean 'SimulatedP3'"),
        ('p3/Kalunga2016Online', 'dataset Kalunga2016Online does not serve task p3; it is served by: Schreuder2010New'),
        ('eeg-core-1.1', "did you mean 'eeg-core-1.0'"),
        ('eeg-core-1.0/sleep_onset', "unknown task of suite 'eeg-core-1.0' 'sleep_onset'"),
        ('eeg-core-1.0/p', "unknown task of suite 'eeg-core-1.0' 'p'"),
        ('eeg-core-1.0/motor_imagry', "did you mean 'motor_imagery'"),
        ('eeg-core-1.0/p3/Kalunga2016Online', 'dataset Kalunga2016Online does not serve task p3'),
    ],
)
def test_a_wrong_task_says_what_there_is(text, says):
    with pytest.raises(RequestError) as error:
        select.select_tasks(text)
    assert says in str(error.value)


def test_version_1_makes_the_published_choices_however_it_is_asked_for():
    for text in ('p3@1', 'eeg-core-1.0/p3', 'eeg-full-1.0/p3', 'p3@1/SimulatedP3'):
        assert select.select_tasks(text)[0][0] == P3 and P3.recipe.published
    (ours, _), *_ = select.select_tasks('p3,jbench-core/p3')
    assert ours == select.tasks()['p3'][1] and not ours.recipe.published
    models = select.select_models('dummy')
    plain, undone, asked = (
        make_cells([Choice(task, SIMULATED, False)], models, parse_overrides(changes))[0]
        for task, changes in ((P3, []), (P3, ['recipe.published=no']), (ours, ['recipe.published=yes']))
    )
    assert plain.overrides == () and len({plain.key, undone.key, asked.key}) == 3
    assert undone.overrides == (('recipe.published', False),) and asked.overrides == (('recipe.published', True),)


@pytest.fixture()
def more_tasks(monkeypatch):
    """A second version of p3 on another channel set, a MEG task of an EEG task's name, and a suite that is whole."""
    newer = dataclasses.replace(P3, version=2, title='corrected')
    meg = dataclasses.replace(P3, device='meg', category='meg')
    known = {**select.tasks(), 'p3': (P3, newer), 'meg/p3': (meg,)}
    monkeypatch.setattr(select, 'tasks', lambda: known)
    monkeypatch.setitem(SUITES, 'old-1.0', Suite((('p3', 1), ('ssvep', 1))))
    return newer, meg


def test_versions_devices_and_suites(more_tasks):
    newer, meg = more_tasks
    assert select.select_tasks('p3') == [(newer, None)]
    assert names('p3@1,p3@2') == ['p3@1', 'p3@2']
    assert names('p3@1/SimulatedP3') == ['p3@1/SimulatedP3']
    assert names('old-1.0') == ['p3@1', 'ssvep@1']  # the suite pins what was new then
    assert select.select_tasks('meg/p3') == [(meg, None)] and (meg, None) in select.select_tasks('meg')
    assert select.select_tasks('meg/p3@1/SimulatedP3') == [(meg, SIMULATED)]
    assert (newer, None) in select.select_tasks('bci') and (P3, None) not in select.select_tasks('bci')
    assert {(newer, None), (meg, None)} <= set(select.select_tasks('all'))


@each(
    'text, expected',
    [
        ('eegnet', ['eegnet']),
        ('EEGNet', ['eegnet']),
        ('dummy, eegnet', ['dummy', 'eegnet']),
        ('eegnet,eegnet,dummy', ['eegnet', 'dummy']),
        ('all', [m.name for m in MODELS.values() if not m.accelerator]),
        ('trca,baselines,eegnet', ['trca', *[b for b in BASELINES if b != 'trca'], 'eegnet']),
        *[
            (g, [m.name for m in MODELS.values() if m.family == g and not m.accelerator])
            for g in select.GROUPS
            if g != 'foundation'
        ],
    ],
)
def test_the_grammar_of_model(text, expected):
    assert [m.spec.name for m in select.select_models(text)] == expected


def test_what_needs_an_accelerator_is_named_or_has_one():
    assert [m.spec.name for m in select.select_models('all', 'gpu')] == list(MODELS)
    assert 'simpleconv_time_agg' in [m.spec.name for m in select.select_models('classic,simpleconv_time_agg', 'cpu')]
    assert 'simpleconv_time_agg' not in [m.spec.name for m in select.select_models('classic', 'cpu')]


@each(
    'text, says',
    [
        ('egnet', "did you mean 'eegnet'"),
        ('', "unknown model ''"),
    ],
)
def test_a_wrong_model_says_what_there_is(text, says):
    with pytest.raises(RequestError) as error:
        select.select_models(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ('task', 'expected'),
    [
        ('ssvep', ['cov_ts_lr', 'ts_lr', 'cospectra_log_lr', 'fbcca', 'trca']),
        ('cvep', ['cov_ts_lr', 'ts_lr', 'trca']),
        ('motor_imagery', ['cov_ts_lr', 'ts_lr', 'csp_lda', 'fgmdm']),
        ('p3', ['cov_ts_lr', 'ts_lr', 'xdawn_ts_lr', 'xdawn_cov_lr', 'xdawn_lda', 'erp_lr']),
        ('mental_arithmetic', ['cov_ts_lr', 'ts_lr', 'band_power_lr']),
    ],
)
def test_a_group_runs_the_models_that_fit(task, expected):
    choice = Choice(select.tasks()[task][0], SIMULATED, False)
    cells = make_cells([choice], select.select_models('baselines'), ())
    assert [c.model.name for c in cells] == [*expected, 'dummy', 'chance']
    named = make_cells([choice], select.select_models('band_power_lr,csp_lda,baselines'), ())
    assert {'band_power_lr', 'csp_lda'} <= {c.model.name for c in named}, 'what is named runs on every paradigm'


@pytest.mark.parametrize('task', ['ieeg/onset', 'meg/speech', 'challenge2026/pose'])
def test_a_group_has_no_model_that_asks_for_places_on_the_scalp_where_there_are_none(task):
    choice = Choice(select.tasks()[task][-1], SIMULATED, False)
    found = [c.model for c in make_cells([choice], select.select_models('classic', 'gpu'), ())]
    assert found and not any('positions' in model.asks for model in found)
    for name in ('multiscale_ssm', 'jbench_tiny'):  # refused where it is named
        with pytest.raises(
            RequestError, match=rf"'{name}' asks where channels lie on the scalp; those of task '{task}'"
        ):
            make_cells([choice], select.select_models(name), ())
    p3 = make_cells([Choice(P3, SIMULATED, False)], select.select_models('classic'), ())
    assert 'multiscale_ssm' in {c.model.name for c in p3}


def test_a_model_that_is_named_and_cannot_predict_the_target_is_refused():
    age = Task(
        name='age', category='x', paradigm='rstate', title='', datasets=('D',), window=Window(), target=Value(),
        metric='pearsonr', recipe=Recipe(loss='squared_error'),
    )  # fmt: skip
    choice = Choice(age, dataclasses.replace(SIMULATED, recipe=()), True)
    cells = make_cells([choice], select.select_models('baselines'), ())
    assert [c.model.name for c in cells] == ['cov_ts_ridge', 'ridge', 'dummy', 'chance']
    for text in ('cov_ts_lr', 'eegnet,cov_ts_lr', 'baselines,cov_ts_lr'):
        with pytest.raises(RequestError) as error:
            make_cells([choice], select.select_models(text), ())
        assert str(error.value) == (
            "model 'cov_ts_lr' predicts targets of kind classes, state, labels; that of task 'age' is 'value'; "
            'a group leaves out what does not fit, as in --model=baselines'
        )


@each('how', [('recipe.adaptation', 'probe'), ('recipe.layer_decay', '0.5')])
def test_only_encoders_are_adapted(how):
    choice = Choice(P3, SIMULATED, False)
    with pytest.raises(RequestError, match="model 'eegnet' is no encoder with a head"):
        make_cells([choice], select.select_models('eegnet'), (how,))
    found = {c.model.family for c in make_cells([choice], select.select_models('all'), (how,))}
    assert found == {'foundation'}


@each('how', [('recipe.adaptation', 'last_k'), ('recipe.layer_decay', 0.5)])
def test_an_adaptation_says_itself_what_learns(how):
    with pytest.raises(RequestError, match=r'--set recipe\.trainable: the adaptation'):
        apply(P3, SIMULATED, (how, ('recipe.trainable', (('head.*', 1.0),))))


# ---- overrides ----

DIFFERENT = {  # for every path of a task that `--set` takes: (text, value)
    'metric': ('f1_macro', 'f1_macro'),
    'window.trigger': ('Action', 'Action'),
    'window.start': ('0.25', 0.25),
    'window.duration': ('2', 2.0),
    'window.stride': ('1e-1', 0.1),
    'window.keep_incomplete': ('yes', True),
    'window.last': ('30', 30.0),
    'target.field': ('label', 'label'),
    'target.prefix': ('imagery_', 'imagery_'),
    'signal.picks': ('Cz, Pz', ('Cz', 'Pz')),
    'signal.sfreq': ('128', 128.0),
    'signal.band': ('1,40', (1.0, 40.0)),
    'signal.notch': ('(50,)', (50.0,)),
    'signal.scaler': ('standard', 'standard'),
    'signal.baseline': ('none', None),
    'signal.factor': ('0.5', 0.5),
    'signal.bads': ('drop', 'drop'),
    'signal.reference': ('laplacian', 'laplacian'),
    'signal.regions': ('yes', True),
    'signal.clamp': ('None', None),
    'split.by': ('session', 'session'),
    'split.stratify': ('code', 'code'),
    'split.valid': ('.25', 0.25),
    'split.test': ('0.1', 0.1),
    'split.seed': ('7', 7),
    'split.order': ('session, subject', ('session', 'subject')),
    'split.fold': ('2/5', '2/5'),
    'split.folds': ('5', '5'),
    'split.within': ('', ''),
    'split.validate_by': ('', ''),
    'recipe.lr': ('3e-4', 3e-4),
    'recipe.weight_decay': ('0', 0.0),
    'recipe.batch_size': ('32', 32),
    'recipe.optimizer': ('adamax', 'adamax'),
    'recipe.schedule': ('constant', 'constant'),
    'recipe.min_delta': ('1e-4', 1e-4),
    'recipe.max_epochs': ('5.0', 5),
    'recipe.microbatch': ('3', 3),
    'recipe.precision': ('bfloat16', 'bfloat16'),
    'recipe.patience': ('3', 3),
    'recipe.least_steps': ('7', 7),
    'recipe.patience_steps': ('9', 9),
    'recipe.grad_clip': ('2', 2.0),
    'recipe.label_smoothing': ('0', 0.0),
    'recipe.class_weights': ('False', False),
    'recipe.loss': ('cross_entropy', 'cross_entropy'),
    'recipe.loss_scale': ('1e-4', 1e-4),
    'recipe.temperature': ('0.2', 0.2),
    'recipe.hide_times': ('0.5', 0.5),
    'recipe.hide_patch': ('0.1', 0.1),
    'recipe.hide_channels': ('0.3', 0.3),
    'recipe.sampler': ('balanced', 'balanced'),
    'recipe.warmup': ('.4', 0.4),
    'recipe.start_div': ('1e5', 1e5),
    'recipe.end_div': ('1000', 1000.0),
    'recipe.adaptation': ('probe', 'probe'),
    'recipe.layer': ('tokens', 'tokens'),
    'recipe.aggregation': ('mean', 'mean'),
    'recipe.head': ('mlp', 'mlp'),
    'recipe.last_k': ('2', 2),
    'recipe.lora_rank': ('4', 4),
    'recipe.lora_alpha': ('8', 8.0),
    'recipe.lora_targets': ('*mlp*, *qkv*', ('*mlp*', '*qkv*')),
    'recipe.lora_dropout': ('.1', 0.1),
    'recipe.layer_decay': ('0.9', 0.9),
    'recipe.head_epochs': ('3', 3),
    'recipe.rotation': ('1', 1),
    'recipe.few_shot': ('10', 10),
    'recipe.few_shot_draw': ('2', 2),
    'recipe.mask_channels': ('.2', 0.2),
    'recipe.final': ('all', 'all'),
    'recipe.together': ('yes', 'yes'),
    'recipe.task_temperature': ('2', 2.0),
    'recipe.published': ('true', True),
    'exclude_bad': ('yes', True),
}
WHOLE = {  # what a task or a config file sets as a whole, and the command line does not
    'signal.crop': Crop(start=0.0),
    'window.where': (Where(field='task', values=('rest',)),),
    'window.trim': Trim(),
    'window.jitter': Jitter(),
    'recipe.trainable': (('head', 1.0), ('*', 0.0)),
    'target.mapping': (('Target', 1), ('NonTarget', 0)),
}
BESIDE = {  # fields that need another one
    'recipe.task_temperature': ('recipe.together', 'yes'),
    'recipe.few_shot_draw': ('recipe.few_shot', '3'),
}


def get(spec: Any, path: str) -> Any:
    """The value at a dotted path."""
    for name in path.split('.'):
        spec = getattr(spec, name)
    return spec


def test_every_option_is_in_the_table():
    assert sorted([*DIFFERENT, *WHOLE]) == sorted(options(P3))


@each('path', [f'recipe.{name}' for name in OF_LOSSES])
def test_fields_of_other_losses_are_refused(path):
    """Of tasks that have none of those that read them, and read where one of several has."""
    text, value = DIFFERENT[path]
    asked = request.Request('p3', 'eegnet', simulated='yes', changes=((path, text),))
    with pytest.raises(RequestError, match=rf'--set {path}: .* is unused with recipe\.loss=cross_entropy; it is for '):
        request.plan(asked, None, Path('absent'))
    for tasks in ('pretrain/masked' if 'hide' in path else 'pretrain/movies', 'pretrain/masked,pretrain/movies'):
        found = request.plan(asked._replace(tasks=tasks), None, Path('absent')).cells
        assert {get(cell.task, path) for cell in found} == {value}


@each('value', ['0.2', 0.1])
def test_a_smoothing_that_no_loss_has_is_refused(value):
    """The default of a recipe, too, where the task has none; not beside a task whose loss has it, and not 0."""
    asked = request.Request('pretrain/movies', 'eegnet', simulated='yes', changes=(('recipe.label_smoothing', value),))
    with pytest.raises(
        RequestError, match=rf'label_smoothing: {value} is unused with recipe.loss=info_nce; it is for '
    ):
        request.plan(asked, None, Path('absent'))
    for fine in (asked._replace(tasks='pretrain/movies,p3'), asked._replace(changes=(('recipe.label_smoothing', 0),))):
        assert request.plan(fine, None, Path('absent')).cells


@each('path', [path for path in DIFFERENT if path.removeprefix('recipe.') not in OF_LOSSES])
def test_text_becomes_the_type_of_the_field(path):
    text, value = DIFFERENT[path]
    read = tuple(('recipe.adaptation', name) for name in FIELDS.get(path.removeprefix('recipe.'), ())[:1])
    if path in BESIDE:
        with pytest.raises(RequestError, match=rf'--set {path}: unused without {BESIDE[path][0]}'):
            apply(P3, SIMULATED, ((path, text),))
        read = (BESIDE[path],)
    new = get(apply(P3, SIMULATED, (*read, (path, text))), path)
    assert new == value and type(new) is type(value)
    assert get(apply(P3, SIMULATED, (*read, (path, value))), path) == value
    if read and path not in ('recipe.layer_decay', *BESIDE):  # which the default adaptation reads
        with pytest.raises(RequestError, match=rf'--set {path}: .* is unused with recipe\.adaptation=full'):
            apply(P3, SIMULATED, ((path, text),))


@each('path', WHOLE)
def test_what_has_no_text_is_given_as_a_whole(path):
    assert get(apply(P3, SIMULATED, ((path, WHOLE[path]),)), path) == WHOLE[path]
    for text in ('x', ''):
        with pytest.raises(RequestError) as error:
            apply(P3, SIMULATED, ((path, text),))
        assert str(error.value) == f'--set {path}: got {text!r}; only a task or a --config file can give it, as a whole'
    with pytest.raises(RequestError, match=rf'--set {path}: '):
        apply(P3, SIMULATED, ((path, Window()),))


def test_the_fields_of_a_part_that_is_there_are_options_and_so_is_its_absence():
    task = dataclasses.replace(P3, signal=dataclasses.replace(P3.signal, crop=Crop(start=0.0)))
    for path, text, value in (('start', '60', 60.0), ('skip', '1e1', 10.0), ('longest', '30', 30.0)):
        assert get(apply(task, SIMULATED, ((f'signal.crop.{path}', text),)), f'signal.crop.{path}') == value
    assert apply(task, SIMULATED, (('signal.crop', 'none'),)).signal == P3.signal
    assert apply(P3, SIMULATED, (('signal.crop', 'none'),)) == apply(P3, SIMULATED, ())
    for asked, path, says in (
        (task, 'signal.crop.strat', "unknown option 'signal.crop.strat'; did you mean 'signal.crop.start'"),
        (P3, 'signal.crop.start', "unknown option 'signal.crop.start'; did you mean 'signal.crop'"),
    ):
        with pytest.raises(RequestError) as error:
            apply(asked, SIMULATED, ((path, '1'),))
        assert says in str(error.value)
    with pytest.raises(RequestError, match=r"--set signal\.crop\.start: got 'x', expected a number"):
        apply(task, SIMULATED, (('signal.crop.start', 'x'),))
    both = (('signal.crop', Crop()), ('signal.crop.longest', '30'))  # of a config file and the command line
    (made,) = make_cells([Choice(P3, SIMULATED, False)], select.select_models('eegnet'), both)
    assert made.task.signal.crop == Crop(longest=30.0)
    assert made.overrides == (('signal.crop', to_json(Crop(longest=30.0))), ('signal.crop.longest', 30.0))


@each(
    'path, text, says',
    [
        ('recipe.epochs', '5', "unknown option 'recipe.epochs'; did you mean 'recipe.max_epochs'"),
        ('lr', '5', "unknown option 'lr'"),
        ('name', 'other', "unknown option 'name'"),
        ('version', '2', "unknown option 'version'"),
        ('datasets', 'a', "unknown option 'datasets'"),
        ('exclude', '', "unknown option 'exclude'"),
        ('target', 'x', "unknown option 'target'; did you mean 'target.field'"),
        ('target.kind', 'value', "unknown option 'target.kind'"),
        ('recipe', 'x', "unknown option 'recipe'"),
        ('recipe.lr.x', '1', "unknown option 'recipe.lr.x'"),
        ('recipe.lr', 'fast', "--set recipe.lr: got 'fast', expected a number"),
        ('recipe.lr', 'nan', "--set recipe.lr: got 'nan', expected a number"),
        ('recipe.lr', 'inf', "--set recipe.lr: got 'inf', expected a number"),
        ('recipe.lr', 'none', "--set recipe.lr: got 'none', expected a number"),
        ('recipe.lr', '-1', '--set recipe.lr: -1.0 must be at least 0'),
        ('recipe.max_epochs', '2.5', "--set recipe.max_epochs: got '2.5', expected a whole number"),
        ('recipe.max_epochs', 'inf', "--set recipe.max_epochs: got 'inf', expected a whole number"),
        ('recipe.max_epochs', '0', '--set recipe.max_epochs: 0 must be at least 1'),
        ('recipe.batch_size', '0', '--set recipe.batch_size: 0 must be at least 1'),
        ('recipe.label_smoothing', '1.5', 'must be at least 0 and at most 1'),
        ('recipe.class_weights', 'maybe', "--set recipe.class_weights: got 'maybe', expected yes or no"),
        ('recipe.loss', 'foo', "--set recipe.loss: got 'foo', expected one of cross_entropy, binary_cross_entropy"),
        ('recipe.loss', 'squared_error', "'squared_error' does not fit classes"),
        (
            'recipe.adaptation',
            'frozen',
            "--set recipe.adaptation: got 'frozen', expected one of full, probe, mlp_probe",
        ),
        ('recipe.layer_decay', '1.5', '--set recipe.layer_decay: 1.5 must be above 0 and at most 1'),
        ('metric', 'foo', "unknown metric of classes 'foo'"),
        ('metric', 'pearsonr', "unknown metric of classes 'pearsonr'"),
        (
            'signal.scaler',
            'foo',
            "--set signal.scaler: got 'foo', expected one of robust, standard, micro, train, none",
        ),
        ('signal.band', '1', "--set signal.band: got '1', expected 2 numbers (A,B) or none"),
        ('signal.band', '', "--set signal.band: got '', expected 2 numbers (A,B) or none"),
        ('signal.band', '1,x', "--set signal.band: got '1,x', expected 2 numbers (A,B) or none"),
        ('signal.notch', 'x', "--set signal.notch: got 'x', expected numbers (A,B,...)"),
        ('signal.band', '40,1', 'must be two ascending numbers'),
        ('signal.baseline', '0.2,0.2', 'must be two ascending numbers'),
        ('signal.notch', '0', 'must be above 0'),
        ('signal.sfreq', '0', '--set signal.sfreq: 0.0 must be above 0'),
        ('signal.factor', '0', '--set signal.factor: 0.0 must be above 0'),
        ('window.duration', '-1', 'must be above 0'),
        ('window.stride', '0', 'must be above 0'),
        ('window.last', 'x', "--set window.last: got 'x', expected a number"),
        ('split.test', '0.8', 'leave no rest to train on'),
        ('split.valid', '0', 'must be above 0'),
        ('split.seed', '-1', 'must be at least 0'),
    ],
)
def test_a_wrong_value_is_refused_in_words(path, text, says):
    with pytest.raises(RequestError) as error:
        apply(P3, SIMULATED, ((path, text),))
    assert says in str(error.value)


@each(
    'task, path, text, says',
    [
        ('p3', 'window.last', '0', 'must be above 0'),
        ('age', 'signal.crop.start', '-1', 'must be at least 0'),
        ('age', 'signal.crop.skip', '-1', 'must be at least 0'),
        ('age', 'signal.crop.longest', '0', 'must be above 0'),
        ('sleep_stage', 'window.trim.longest', '-1', 'must be at least 0'),
        ('audiovisual_stimulus', 'split.n', '2', 'must be at least 3'),
        ('audiovisual_stimulus', 'split.gap', '-1', 'must be at least 0'),
        ('typing', 'split.threshold', '2', 'must be at least 0 and at most 1'),
        ('emg/typing', 'target.length', '0', 'must be at least 1'),
        ('emg/typing', 'target.blank', '0', 'must be at least 1'),
        ('emg/typing', 'target.core', '2,1', 'must be two ascending numbers'),
        ('sleep_onset', 'target.clip', '2,1', 'must be two ascending numbers'),
    ],
)
def test_fields_of_other_tasks_have_their_ranges_too(task, path, text, says):
    with pytest.raises(RequestError) as error:
        apply(select.tasks()[task][-1], dataclasses.replace(SIMULATED, recipe=()), ((path, text),))
    assert f'--set {path}: ' in str(error.value) and says in str(error.value)


def test_metrics_fit_their_targets():
    import numpy as np

    from jbench.spec.metrics import of_kind
    from jbench.spec.task import TARGETS
    from jbench.targets import score
    from jbench.train.losses import LOSSES

    y = {'labels': np.eye(3, dtype=int), 'value': np.arange(3.0)[:, None], 'keystrokes': np.zeros((3, 2), int)}
    y['angles'] = np.zeros((3, 3))
    y |= {'moment': np.eye(3, 2, dtype=int), 'next': np.eye(3, 2, dtype=int), 'hidden': np.arange(3)[:, None]}
    outputs = {'value': y['value'], 'keystrokes': np.zeros((3, 4)), 'hidden': np.ones((3, 6))}
    outputs |= {'moment': np.eye(3, 32), 'next': np.eye(3, 32)}
    names = np.array(list('abc'))
    about = {'vectors': np.eye(3), 'group': names, 'subject': names, 'cell': names}
    for kind in TARGETS:
        found = score.evaluate(kind, outputs.get(kind, np.eye(3)), y.get(kind, np.arange(3)), about)
        assert found and set(of_kind(kind)) == set(found)
    assert {loss for target in TARGETS.values() for loss in target.losses} == set(LOSSES)


def test_a_task_of_values_takes_other_metrics():
    age = Task(
        name='age',
        category='x',
        title='',
        datasets=('D',),
        window=Window(),
        target=Value(),
        metric='pearsonr',
        recipe=Recipe(loss='squared_error'),
    )
    check(age)
    with pytest.raises(RequestError, match='bal_acc'):
        check(dataclasses.replace(age, metric='bal_acc'))


@pytest.mark.slow
@each('task', EVERY, ids=lambda t: f'{t.device}-{t.name}-{t.version}')
def test_values_have_the_type_of_their_field(task):
    """So that a value given as text, equal to the one that is there, leaves the key as it is."""
    for path in options(task):
        value = get(task, path)
        text = ','.join(map(str, value)) if isinstance(value, tuple) else str(value)
        text = value if path in WHOLE else text
        assert canonical(override(task, path, text)) == canonical(task), path


def test_the_order_of_overrides_task_dataset_config_user(tmp_path, monkeypatch):
    task = dataclasses.replace(
        P3, overrides=(('SimulatedP3', (('recipe.lr', 1.0), ('recipe.patience', 1), ('window.start', 0.5))),)
    )
    dataset = dataclasses.replace(
        SIMULATED, recipe=(('recipe.lr', 2.0), ('recipe.patience', 2), ('recipe.grad_clip', 2.0))
    )
    config = tmp_path / 'c.py'
    config.write_text("def get():\n    return {'recipe.lr': 3.0, 'recipe.patience': 3, 'recipe.batch_size': 3}\n")
    monkeypatch.setattr(select, 'tasks', lambda: {'p3': (task,)})
    known = {**select.datasets(), 'SimulatedP3': dataset}
    monkeypatch.setattr(select, 'datasets', lambda: known)
    args = arguments.parse(['--task=p3', f'--config={config}', '--set', 'recipe.lr=4', f'--workdir={tmp_path}'])
    cells, *_ = run._plan(args)
    made = cells[0].task
    assert (made.window.start, made.recipe.grad_clip, made.recipe.patience, made.recipe.lr) == (0.5, 2.0, 3, 4.0)
    assert made.recipe.batch_size == 3 and made.recipe.max_epochs == P3.recipe.max_epochs
    assert dict(cells[0].overrides) == {'recipe.batch_size': 3, 'recipe.lr': 4.0, 'recipe.patience': 3}


def test_epochs_that_are_asked_for_are_counted_in_epochs(tmp_path):
    """A recipe in steps would go on beyond them."""
    task = in_steps(dataclasses.replace(P3, recipe=Recipe()))
    assert (task.recipe.least_steps, task.recipe.patience_steps) == (1000, 300)
    for fields, steps in (
        ((('recipe.max_epochs', '5'),), (0, 300)),
        ((('recipe.patience', '5'),), (1000, 0)),
        ((('recipe.max_epochs', '5'), ('recipe.least_steps', '7')), (7, 300)),
        ((('recipe.lr', '0.1'),), (1000, 300)),
    ):
        plain = dataclasses.replace(SIMULATED, recipe=())
        made = apply(task, plain, fields).recipe
        assert (made.least_steps, made.patience_steps) == steps
        simulated = dataclasses.replace(SIMULATED, recipe=fields)
        assert (apply(task, simulated, ()).recipe.least_steps, made.patience_steps) == steps
    (cell,) = make_cells([Choice(task, plain, True)], select.select_models('eegnet'), (('recipe.max_epochs', '5'),))
    assert cell.overrides == (('recipe.max_epochs', 5), ('recipe.least_steps', 0))
    (tried,) = make_cells([Choice(task, plain, True)], select.select_models('eegnet'), (), debug=True)
    assert (tried.task.recipe.max_epochs, tried.task.recipe.least_steps) == (2, 0)


@pytest.mark.parametrize(
    ('text', 'says'),
    [
        ('x = 1', 'expected a function get()'),
        ('def get():\n    return 1', 'expected a function get()'),
        ('def get(:', 'SyntaxError'),
        ('def get():\n    return {}["x"]', 'KeyError'),
    ],
)
def test_a_wrong_config_is_one_message(tmp_path, text, says):
    (tmp_path / 'c.py').write_text(text)
    with pytest.raises(RequestError) as error:
        user_files.config_overrides(str(tmp_path / 'c.py'))
    assert says in str(error.value) and str(tmp_path / 'c.py') in str(error.value)


@pytest.mark.parametrize('text', ['recipe.lr', '=3', ''])
def test_an_override_needs_a_field_and_a_value(text):
    with pytest.raises(RequestError, match='expected a field and a value'):
        parse_overrides([text])


def test_the_last_of_two_overrides_counts_and_their_order_does_not():
    assert parse_overrides(['b=1', 'a=2', 'b=3']) == (('a', '2'), ('b', '3'))


def test_paths_leave_out_the_tag():
    assert not [p for p in paths(P3) if p.endswith('kind')]


# ---- identity ----


def cell(**changes: Any) -> Cell:
    """A cell of p3."""
    return dataclasses.replace(Cell(task=P3, dataset=SIMULATED, model=MODELS['eegnet']), **changes)


def leaves(spec: Any, prefix: str = '') -> Iterator[str]:
    """Every dotted path, `kind` included."""
    for f in dataclasses.fields(spec):
        value = getattr(spec, f.name)
        yield from leaves(value, f'{prefix}{f.name}.') if dataclasses.is_dataclass(value) else [prefix + f.name]


def changed(spec: Any, path: str) -> Any:
    """A copy that differs in one field."""
    head, _, rest = path.partition('.')
    old = getattr(spec, head)
    if rest:
        return dataclasses.replace(spec, **{head: changed(old, rest)})
    new = {
        bool: lambda v: not v,
        int: lambda v: v + 1,
        float: lambda v: v + 1,
        str: lambda v: v + 'x',
        tuple: lambda v: (*v, 'x'),
        type(None): lambda v: 'x',
    }[type(old)](old)
    return dataclasses.replace(spec, **{head: new})


WORDS = (*cell_module.WORDS, 'overrides', 'exclude')  # in the key only as far as they act


@each('path', [p for p in leaves(P3) if p not in WORDS])
def test_every_field_of_a_task_counts_in_the_key(path):
    assert cell(task=changed(P3, path)).key != cell().key


def test_dataset_model_and_debug_count_in_the_key():
    other = dataclasses.replace(SIMULATED, name='Other')
    newer = dataclasses.replace(SIMULATED, revision='2')
    eegnet = MODELS['eegnet']
    mended, pretrained = (dataclasses.replace(eegnet, **change) for change in ({'version': 2}, {'weights': 'ab12'}))
    made = [cell(), cell(dataset=other), cell(dataset=newer), cell(model=MODELS['dummy']), cell(debug=True)]
    made += [cell(model=mended), cell(model=pretrained)]
    assert len({c.key for c in made}) == len(made)


def test_words_about_a_task_do_not_count_in_the_key():
    other = dataclasses.replace(
        P3, title='other words', paradigm='erp', datasets=(*P3.datasets, 'One2026More'), category='misc'
    )
    assert cell(task=other).key == cell().key
    elsewhere = dataclasses.replace(P3, exclude=(Exclusion('Other', 'S01', 'why'),))
    here = dataclasses.replace(P3, exclude=(Exclusion('SimulatedP3', 'S01', 'why'),))
    assert cell(task=elsewhere).key == cell().key != cell(task=here).key


def test_the_key_says_what_is_asked_not_how_it_was_typed():
    one = apply(P3, SIMULATED, (('recipe.lr', '1e-2'),))
    two = apply(P3, SIMULATED, (('recipe.lr', '0.010'),))
    assert cell(task=one, overrides=(('recipe.lr', '1e-2'),)).key == cell(task=two).key
    assert cell(dataset=dataclasses.replace(SIMULATED, title='another title')).key == cell().key


def test_canonical_json_does_not_move():
    """The text that every key is a hash of: if this changes, every finished result is computed again."""
    spec = Classes(field='code', prefix='imagery_')
    assert canonical(spec) == '{"field":"code","kind":"classes","mapping":[],"prefix":"imagery_"}'
    assert canonical({'b': (1, 2.0), 'a': None, 'c': {'y': True, 'x': 1e-4}}) == (
        '{"a":null,"b":[1,2.0],"c":{"x":0.0001,"y":true}}'
    )
    assert canonical(Window()) == (
        '{"duration":1.0,"jitter":null,"keep_incomplete":false,"last":null,"start":0.0,"stride":null,"trigger":"Stimulus",'
        '"trim":null,"where":[]}'
    )
    with pytest.raises(ValueError):
        canonical({'x': float('nan')})


def test_cells_come_in_order_and_once():
    choices = [Choice(P3, SIMULATED, False), Choice(P3, SIMULATED, True)]
    models = select.select_models('eegnet,dummy')
    cells = make_cells(choices, models, ())
    assert [c.model.name for c in cells] == ['eegnet', 'dummy']
    tried = make_cells(choices, models, (), debug=True)
    assert all(c.debug and c.task.recipe.max_epochs == 2 and c.overrides == () for c in tried)


@each('task', EVERY, ids=lambda t: f'{t.device}-{t.name}-{t.version}')
def test_a_cell_comes_back_from_its_json(task):
    for name in (*task.datasets, task.simulated):
        if name in select.datasets():
            dataset = select.datasets()[name]
            asked = Cell(task=apply(task, dataset, ()), dataset=dataset, model=MODELS['simpleconv_time_agg'])
            back = from_json(Cell, json.loads(json.dumps(to_json(asked))))
            assert back == asked and back.key == asked.key


@each(
    'change, words',
    [
        ({'n_chans': '8'}, r"Dataset.n_chans: found '8', expected int"),
        ({'n_chan': 8}, r"unknown field of Dataset 'n_chan'; did you mean 'n_chans'"),
        ({'sfreq': [True]}, r'Dataset.sfreq\[0\]: found True, expected float'),
        ({'download': {'url': 1}}, r'Dataset.download.url: found 1, expected str'),
        ({'simulated': 1}, r'Dataset.simulated: found 1, expected bool'),
    ],
)
def test_a_wrong_json_is_named(change, words):
    with pytest.raises(RequestError, match=words):
        from_json(Dataset, {**to_json(SIMULATED), **change})


def test_an_unknown_kind_and_an_absent_field_are_named():
    with pytest.raises(RequestError, match=r"unknown kind of Task.target 'class'; did you mean 'classes'"):
        from_json(Task, {**to_json(P3), 'target': {'kind': 'class'}})
    with pytest.raises(RequestError, match="Task: lacks the field 'window'"):
        from_json(Task, {k: v for k, v in to_json(P3).items() if k != 'window'})
    with pytest.raises(RequestError, match=r'Task: found \[\], expected an object with the fields of Task'):
        from_json(Task, [])


def test_a_model_has_its_say_between_dataset_and_user():
    mine = dataclasses.replace(MODELS['eegnet'], overrides=(('signal.sfreq', 200.0), ('recipe.lr', 0.5)))
    asked = apply(P3, SIMULATED, (), mine)
    assert (asked.signal.sfreq, asked.recipe.lr) == (200.0, 0.5) != (P3.signal.sfreq, P3.recipe.lr)
    assert apply(P3, SIMULATED, (('recipe.lr', 0.25),), mine).recipe.lr == 0.25
    made = make_cells([Choice(P3, SIMULATED, True)], [select.Pick(mine, True), select.Pick(MODELS['eegnet'], True)], ())
    assert len({c.source for c in made}) == len({c.key for c in made}) == 2 and not made[0].overrides
    with pytest.raises(RequestError, match=r"unknown field in the overrides of model 'eegnet' 'signal.sfrequ'"):
        apply(P3, SIMULATED, (), dataclasses.replace(mine, overrides=(('signal.sfrequ', 1.0),)))


def test_a_model_whose_package_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    far = dataclasses.replace(MODELS['eegnet'], name='far', needs=('no_such_package', 'numpy'), extra='bids')
    monkeypatch.setattr(select, 'MODELS', {**MODELS, 'far': far})
    with pytest.raises(MissingExtraError, match=r'far needs no_such_package and numpy, .*\.\[bids\]'):
        select.select_models('far')
    assert select.select_models('eegnet')
