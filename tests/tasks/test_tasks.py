"""Specs of version 1 against the published facts (`fixtures/tasks_v1.json`, made by `make_task_fixtures.py`).

The tables below say what of the published files is called otherwise here. Whatever else differs fails.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from places import FIXTURES, ROOT

from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.spec.encoders import ENCODERS
from jbench.spec.identity import to_json
from jbench.spec.metrics import of_kind
from jbench.spec.task import (
    ByBlock,
    ByGroup,
    BySimilarity,
    Classes,
    Crop,
    Embedding,
    Keystrokes,
    Labels,
    Predefined,
    Recipe,
    SignalSpec,
    SplitSpec,
    StateClasses,
    Target,
    Task,
    Trim,
    Value,
    Where,
    Window,
)
from jbench.tasks import FITS
from jbench.tasks.suites import CORE_TASKS, SUITES

FACTS = json.loads((FIXTURES / 'tasks_v1.json').read_text())
EVERY = [t for versions in select.tasks().values() for t in versions]
OURS = (
    'open_sets',
    'pretrain',
    'challenge2025',
    'challenge2026',
    'ieeg',
    'libribrain2025',
)  # categories that are not NeuralBench's
UNPUBLISHED = ('jbench-core', 'challenge2025-1.0', 'challenge2026-1.0')  # suites
BARE = replace(select.datasets()['Zyma2019Electroencephalograms'], aliases=(), recipe=())  # of which only names matter

FIELDS = {'description': 'label', 'timeline': 'recording'}  # columns of the event table that jbench calls otherwise
TYPES = {'BidsEmg': 'Emg', 'SleepOnsetMarker': 'SleepOnset'}  # and types of events
TYPES_JOINED = {('EpileptiformActivity', 'Artifact'): 'ClinicalEvent'}
CATEGORIES = {
    'BCI': 'bci',
    'Evoked Responses': 'evoked',
    'Clinical': 'clinical',
    'Sleep': 'sleep',
    'Internal State': 'internal_state',
    'Phenotyping': 'phenotyping',
    'Cognitive': 'cognitive',
    'Misc': 'misc',
}
SEQUENCES = tuple(map(str, range(68, 85)))  # of the story of Brennan2019Hierarchical, which has 84
SPLITS = {  # published query -> (field, values)
    None: ('split', ('test',)),  # the dataset's own
    "split == 'eval'": ('split', ('eval',)),
    "release in ['R5']": ('release', ('R5',)),
    "label == 'stim_test'": ('label', ('stim_test',)),
    'sequence_id >= 68': ('sequence_id', SEQUENCES),
    "session in ['16', '17', '18', '19']": ('session', ('16', '17', '18', '19')),
    "run in ['10', '11', '12']": ('run', ('10', '11', '12')),
    "session == '1'": ('session', ('1',)),
    "session == '2'": ('session', ('2',)),
    "session == '3'": ('session', ('3',)),
    "run == '1finaltest'": ('run', ('1finaltest',)),
    'subject.isin([' + ', '.join(f"'Dreyer2023Large/{k}'" for k in range(61, 82)) + '])': (
        'subject',
        tuple(map(str, range(61, 82))),
    ),
}
REST = (Where(field='task', values=('task-RestingState',)), Where(field='duration', least=180.002))
RESTING = "(type == 'Eeg') & (task == 'task-RestingState') & (duration > 180.0) & "  # at 500 Hz: one sample more
KEPT = {  # published query before the split -> conditions that triggers meet
    f'{RESTING}age.notnull()': (*REST, Where(field='age')),
    f'{RESTING}sex.notnull()': (*REST, Where(field='sex')),
    f'{RESTING}externalizing.notnull()': (*REST, Where(field='externalizing')),
    "task=='task-contrastChangeDetection'": (Where(field='task', values=('task-contrastChangeDetection',)),),
    "(reaction_time >= 0.5) | type == 'Eeg'": (Where(field='reaction_time', least=0.5),),
    "task in ['MATBeasy', 'MATBmed', 'MATBdiff']": (Where(field='task', values=('MATBeasy', 'MATBmed', 'MATBdiff')),),
    "(type == 'Eeg') | (code.isin([1, 2]))": (Where(field='code', values=('1', '2')),),
    "(type == 'Eeg') | (code.isin([0, 1]))": (Where(field='code', values=('0', '1')),),
    "type != 'Image' or label in ['stim_train', 'stim_test']": (
        Where(field='label', values=('stim_train', 'stim_test')),
    ),
    '~trial_id.isin([0.0, 1.0])': (Where(field='trial_id', values=('0', '1'), keep=False),),
    "split == 'train'": (Where(field='split', values=('train',)),),
    "site not in ['GLAS', 'LOND']": (Where(field='site', values=('GLAS', 'LOND'), keep=False),),
    'timeline_index < 120': (Where(field='recording_index', values=tuple(map(str, range(120)))),),
    "type in ['Eeg', 'Audio', 'Word']": (),  # of others no task asks
    None: (),
}
DROPPED = {  # published query after the split -> conditions of what it removes
    "~run.str.endswith('train')": (Where(field='run', values=tuple(f'{k}train' for k in range(1, 10))),),
    "~((type == 'Stimulus') & (code == 3))": (Where(field='code', values=('3',)),),
}
PREFIXES = {"(type == 'Eeg') | (~description.isna() & description.str.startswith('imagery_'))": 'imagery_'}
READERS = {  # published steps that readers take here, by name or query
    "~((type == 'SleepArousal') & (state == 'noise'))",
    'type != "Fmri" or space == "fsaverage"',
    'TextPreprocessor',
}
COLUMNS = {  # published columns of steps -> ours: field, mapping
    'difficulty': ('code', (('0', 0), ('1', 1), ('2', 1))),  # code == 0: 0, code in (1, 2): 1
}
STIMULI = {  # published extractor -> where its stimulus is, and what windows of one stimulus share
    'HuggingFaceImage': {},
    'HuggingFaceVideo': {},
    'HuggingFaceText': {'field': 'text', 'group': 'text'},
    'SpacyEmbedding': {'field': 'text', 'group': 'text'},
    'Wav2Vec': {'event': 'Audio', 'group': 'text'},
}
SCORES = {  # ours -> published (monitor, headline), where they are not val/<ours> and test/<ours>
    'top5_acc': ('val/batch_top5_acc', 'test/full_retrieval/top5_acc_subject-agg'),
    'cer': ('val/CER', 'test/CER'),
}
LOSS_NAMES = {
    'CrossEntropyLoss': 'cross_entropy',
    'BCEWithLogitsLoss': 'binary_cross_entropy',
    'MSELoss': 'squared_error',
    'ClipLoss': 'clip',
    'CTCLoss': 'ctc',
}
SAMPLERS = {None: 'shuffle', 'ClassificationSampler': 'balanced', 'RegressionBinSampler': 'bins'}
EARLY = {'SleepStage', 'SleepArousal', 'SleepOnset'}  # types of events that Ghassemi2018You has as published, too
ORDERS = {  # published step that sorts recordings, and dataset whose reader gives another order -> columns that sort so
    ('CropSleepRecordings', 'Kemp2000Analysis'): ('scorer', 'session', 'subject'),
    ('query', 'Nieuwland2018Large'): ('subject',),
}
VOLUMES = {'Chang2019Bold5000': 2.0, 'Allen2022MassiveRaw': 1.6, 'Hebart2023ThingsBold': 1.5}  # s from one to the next


def published_split(facts: dict[str, Any], dataset: str) -> SplitSpec:
    """A split of the published files in our words."""
    sorting = {s['name'] for s in facts['steps']} | ({'query'} if facts['query'] else set())
    (order,) = [columns for (step, name), columns in ORDERS.items() if name == dataset and step in sorting] or [()]
    facts = facts['split']
    seed, valid = facts['valid_random_state'], facts['valid_split_ratio']
    if facts['name'] == 'PredefinedSplit':
        (field, test), by = SPLITS[facts['test_split_query']], facts['valid_split_by']
        return Predefined(field=field, test=test, valid_by=FIELDS.get(by, by), valid=valid, seed=seed)
    assert facts['test_random_state'] == seed
    if facts['name'] == 'SimilaritySplit':
        assert facts['use_sklearn_split']
        return BySimilarity(threshold=facts['threshold'], valid=valid, test=facts['test_split_ratio'], seed=seed)
    strata = facts.get('stratify_by')
    return ByGroup(
        by=facts['split_by'],
        stratify=FIELDS.get(strata, strata),
        valid=valid,
        test=facts['test_split_ratio'],
        seed=seed,
        order=order,
    )


def published_type(name: str | list[str]) -> str:
    """A type of events in our words; a list of types is one type."""
    return TYPES.get(name, name) if isinstance(name, str) else TYPES_JOINED[tuple(name)]


def published_window(facts: dict[str, Any]) -> Window:
    """Window, conditions on triggers, what of them is left: of the window and the steps of the published files."""
    window, kept, last, trim = facts['window'], [*KEPT[facts['query']]], None, None
    for step in facts['steps']:
        name = step['name']
        if name == 'QueryEvents' and step['query'] not in READERS and 'subject.isin' not in str(step['query']):
            kept += KEPT[step['query']]
        elif name == 'OffsetEvents':
            assert step['query'] == f"type == '{window['trigger']}'" and step['end_offset'] == 0
            last = -step['start_offset_from_end']
        elif name == 'CropSleepRecordings':
            trim = Trim(longest=60 * step['max_wake_duration_min'], every=False)
        elif name == 'AddSleepOnsetTargets':
            assert step['max_pre_n2_s'] == 1200  # as the readers of nights do
    return Window(
        trigger=published_type(window['trigger']),
        start=window['start'],
        duration=window['duration'],
        stride=window['stride'],
        keep_incomplete=not window['stride_drop_incomplete'],
        where=tuple(kept),
        last=last,
        trim=trim,
    )


def published_target(facts: dict[str, Any]) -> Target:
    """A target of the published files in our words."""
    target = facts['target']
    name, event, field = target['name'], target.get('event_types'), target.get('event_field')
    if name == 'SleepOnsetTargetExtractor':
        return Value(field='n2_onset', until=True, clip=(0.0, target['cap_s']))
    if name == 'EventField':
        return Value(field=field)
    if name == 'CroppedExtractor':
        keys = target['extractor']
        core = (target['offset'], target['offset'] + target['duration'])
        length = {'blank': keys['pad_value'], 'length': keys['max_length']}
        return Keystrokes(event=keys['event_types'], field=keys['event_field'], core=core, held=True, **length)
    if name != 'LabelEncoder':
        return published_embedding(facts)
    if target.get('treat_missing_as_separate_class'):
        return StateClasses(event=event, field=field)
    if target.get('aggregation') == 'sum':
        return Labels(event=published_type(event), field=field)
    assert published_type(event) == facts['window']['trigger']
    field, mapping = COLUMNS.get(field, (FIELDS.get(field, field), tuple(target.get('predefined_mapping', {}).items())))
    prefix = [PREFIXES[s['query']] for s in facts['later_steps'] if s.get('query') in PREFIXES]
    return Classes(field=field, mapping=mapping, prefix=''.join(prefix))


def published_embedding(facts: dict[str, Any]) -> Embedding:
    """An embedding of the published files in our words; layers, rates and sizes as `encoders.py` has them."""
    target = facts['target']
    inner = target.get('extractor', target)
    model = inner.get('model_name', 'spacy/en_core_web_lg')
    (name,) = [n for n, e in ENCODERS.items() if e.model == model]
    encoder, layers = ENCODERS[name], inner.get('layers', () if name == 'spacy_lg' else 0.6667)  # its default: 2/3
    assert encoder.layers == (tuple(layers) if isinstance(layers, list | tuple) else (layers,))
    assert encoder.groups == target.get('n_groups_concat', 1)
    assert encoder.frequency == inner.get('frequency', 0.0)
    assert encoder.size == {1024: 300}.get(facts['n_outputs'], facts['n_outputs'])  # word: 300, published as 1024
    assert facts['target_scaler'] in (None, {'dim': 1})
    return Embedding(encoder=name, scaled=facts['target_scaler'] is not None, **STIMULI[inner['name']])


def published_signal(facts: dict[str, Any], dataset: str) -> SignalSpec:
    """A signal of the published files in our words."""
    signal, crops = facts['signal'], [s for s in facts['steps'] if s['name'] == 'CropTimelines']
    if signal['name'] == 'FmriExtractor':  # vertices of fsaverage5 (the reader), z-scored by run
        assert signal['frequency'] == 'native' and signal['projection']['mesh'] == 'fsaverage5'
        rate = 1 / VOLUMES[dataset]
        return SignalSpec(picks=('misc',), sfreq=rate, band=None, notch=(), scaler='standard', clamp=None)
    crop = None
    for step in crops:  # moves the start of the event, and not that of the signal
        crop = Crop(start=0.0, skip=step['start_offset_s'], longest=step['max_duration_s'])
    return SignalSpec(
        picks=tuple(signal['picks']),
        sfreq=signal['frequency'],
        band=signal['filter'] and tuple(signal['filter']),
        notch=tuple(signal['notch_filter'] or ()),
        # no scaler: the published reader of EMG gives microvolts, as its network wants them
        scaler={'RobustScaler': 'robust', None: 'micro'}[signal['scaler']],
        baseline=signal['baseline'] and tuple(signal['baseline']),
        clamp=signal['clamp'],
        crop=crop,
    )


def published_recipe(facts: dict[str, Any]) -> Recipe:
    """A recipe of the published files in our words."""
    loss, optimizer, schedule = facts['loss'], facts['optimizer'], facts['scheduler']
    scale = 1.0
    if loss['name'] == 'MultiLoss':
        ((part, loss),), scale = loss['losses'].items(), loss['weights']['mse']
        assert part == 'mse'
    if loss['name'] == 'ClipLoss':
        assert (loss['norm_kind'], loss['temperature'], loss['symmetric']) == ('y', False, False)
    assert optimizer['name'] == 'AdamW' or optimizer == {'name': 'Adam', 'lr': optimizer['lr']}  # without decay
    assert schedule['max_lr'] == optimizer['lr'] and schedule['anneal_strategy'] == 'cos'
    sampler = facts['sampler'] or {}
    assert sampler.get('bin_edges', [0.0, 40.0, 90.0, 300.0, 600.0]) == [0.0, 40.0, 90.0, 300.0, 600.0]
    return Recipe(
        lr=optimizer['lr'],
        weight_decay=optimizer.get('weight_decay', 0.0),
        batch_size=facts['batch_size'],
        max_epochs=facts['max_epochs'],
        patience=facts['patience'],
        grad_clip=facts['grad_clip_norm'],
        label_smoothing=loss.get('label_smoothing', 0.0),
        class_weights=facts['class_weights'],
        loss=LOSS_NAMES[loss['name']],
        loss_scale=scale,
        sampler=SAMPLERS[sampler.get('name')],
        warmup=schedule['pct_start'],
        start_div=schedule.get('div_factor', 25.0),
        end_div=schedule.get('final_div_factor', 1e4),
        published=True,
    )


def published_subjects(steps: list[dict[str, Any]]) -> set[str]:
    """Subjects that the published steps remove, without the name of their dataset."""
    asked = [s['query'] for s in steps if 'subject.isin' in str(s.get('query'))]
    assert all(q.startswith('~') for q in asked)
    return {name for q in asked for name in re.findall(r"/(\w+)'", q)}


def compare(task: Task, facts: dict[str, Any], dataset: str) -> None:
    """A task, as it runs on one dataset, against the facts of that dataset."""
    window, target = published_window(facts), published_target(facts)
    if dataset == 'Ghassemi2018You' and window.trigger in EARLY:
        window = replace(window, trigger=f'{window.trigger}Early')
    if dataset == 'Ghassemi2018You' and isinstance(target, StateClasses):
        target = replace(target, event=f'{target.event}Early')
    assert task.window == window and sorted_mapping(task.target) == sorted_mapping(target)
    assert task.split == published_split(facts, dataset)
    assert task.signal == published_signal(facts, dataset)
    assert task.recipe == published_recipe(facts)
    later = [s['query'] for s in facts['later_steps'] if s['name'] == 'QueryEvents' and s['query'] in DROPPED]
    assert task.drop == tuple(c for q in later for c in DROPPED[q])
    monitor, headline = SCORES.get(task.metric, (f'val/{task.metric}', f'test/{task.metric}'))
    assert (facts['monitor'], facts['headline_metric']) == (monitor, headline)
    assert facts['mode'] == ('min' if task.metric in ('bmae', 'cer') else 'max')
    assert task.level == 'window'
    for late, steps in ((False, facts['steps']), (True, facts['later_steps'])):
        removed = {e.subject for e in task.exclude if e.dataset == dataset and e.after_split == late}
        assert removed - {'Subject00'} == published_subjects(steps)  # which the published reader never reads


def sorted_mapping(target: Target) -> Target:
    return replace(target, mapping=tuple(sorted(target.mapping))) if isinstance(target, Classes) else target


def known_steps(facts: dict[str, Any]) -> None:
    """Every published step is one that this file speaks of."""
    named = {'CropTimelines', 'OffsetEvents', 'CropSleepRecordings', 'AddSleepOnsetTargets', *READERS}
    for when, steps in (('steps', facts['steps']), ('later_steps', facts['later_steps'])):
        for step in steps:
            query = step.get('query')
            known = (*KEPT, *READERS) if when == 'steps' else (*DROPPED, *PREFIXES)
            created = step['name'] == 'CreateColumn' and step['column'] in (*COLUMNS, 'label')
            filtered = step['name'] == 'QueryEvents' and (query in known or published_subjects([step]))
            assert step['name'] in named or created or filtered or (query is None and 'query' in step), step


@pytest.mark.parametrize('name', sorted(FACTS))
def test_version_1_is_the_published_protocol(name):
    task, facts = select.tasks()[name][0], FACTS[name]
    assert task.version == 1 and list(task.datasets[:1]) == facts['datasets'][:1]
    assert set(task.datasets) == set(facts['datasets'])
    assert task.category == (CATEGORIES[facts['category']] if task.device == 'eeg' else task.device)
    for dataset in task.datasets:
        own = replace(BARE, name=dataset)
        merged = {**facts, **facts['dataset_overrides'].get(dataset, {})}
        known_steps(merged)
        compare(cells.apply(task, own, ()), merged, dataset)


def test_facts_and_tasks_are_the_same_ones():
    first = {t.full_name for t in EVERY if t.version == 1 and t.category not in OURS}
    assert len(FACTS) == 41 and first == set(FACTS)
    assert {name for name, facts in FACTS.items() if facts['core']} == set(CORE_TASKS)


def test_steps_and_names_that_a_spec_does_not_hold_are_listed_as_differences():
    text = (ROOT / 'docs' / 'differences.md').read_text()
    told = [*FIELDS, *TYPES, *[n for pair in TYPES_JOINED for n in pair], 'noise', 'TextPreprocessor', 'fsaverage']
    told += [
        'first_samp',
        'batch_top5_acc',
        'recording_index',
        'sequence_id',
        'difficulty',
        'AddSleepOnsetTargets',
        'n2_onset',
    ]
    for word in told:
        assert f'`{word}`' in text, word
    for facts in FACTS.values():
        for dataset, own in facts['dataset_overrides'].items():
            assert not own.get('later_steps') or dataset in text


def test_baselines_know_the_paradigm_of_every_task():
    words = {p for m in MODELS.values() for p in m.paradigms}
    assert {t.name: t.paradigm for t in EVERY if t.paradigm not in words} == {}


def test_scores_and_losses_of_every_task_are_known():
    for task in EVERY:
        assert task.metric in of_kind(task.target.kind), task.full_name
        assert task.recipe.loss in task.target.losses, task.full_name


def test_every_task_of_neuralbench_can_be_simulated_under_its_own_name():
    for task in EVERY:
        if task.category not in OURS:
            name = '' if task.device == 'eeg' else task.device
            assert task.simulated == 'Simulated' + ''.join(w.capitalize() for w in f'{name}_{task.name}'.split('_'))


# ---- version 2 ----


def changed(first: Task, second: Task) -> set[str]:
    """Fields in which two versions of a task differ, by dotted path; of overrides, the datasets; of splits, 'split'."""

    def leaves(value: Any, path: str = '') -> dict[str, Any]:
        if isinstance(value, dict) and path != 'split':
            return {k: v for key, inner in value.items() for k, v in leaves(inner, f'{path}.{key}'.strip('.')).items()}
        return {path: value}

    a, b = leaves(to_json(first)), leaves(to_json(second))
    found = {k for k in {*a, *b} - {'version', 'supersedes', 'overrides'} if a.get(k) != b.get(k)}
    own, new = dict(first.overrides), dict(second.overrides)
    return found | {d for d in {*own, *new} if own.get(d) != new.get(d)}


WITHIN = {'signal.scaler'}
RETRIEVAL = WITHIN | {'recipe.loss'}
CHANGES = {  # what version 2 of each task changes beside the fits: docs/differences.md says why
    'age': {'signal.crop.start', 'target.scaled', 'level'},
    'audiovisual_stimulus': WITHIN | {'split'},
    'dementia_diagnosis': {'level'},
    'depression_diagnosis': {'level'},
    'emg/typing': {'target.held'},
    'fmri/image': RETRIEVAL | {'split'},
    'image': RETRIEVAL | {'split'},
    'meg/image': RETRIEVAL | {'split'},
    'meg/typing': WITHIN,
    'motor_imagery': {'exclude', 'Barachant2012Robust', 'Dornhege2004Boosting', 'Wei2022BeetlA', 'Wei2022BeetlB'},
    'n170': {'Kappenman2021ErpN170'},
    'n2pc': {'Kappenman2021ErpN2pc'},
    'n400': {'Kappenman2021ErpN400'},
    'p3': {
        'Haufe2011Eeg',
        'Hoffmann2008Efficient',
        'Kappenman2021ErpP3',
        'Riccio2013Attention',
        'Romani2025Brainform',
    },
    'parkinsons_diagnosis': {'level'},
    'pathology': {'signal.crop.start', 'level'},
    'psychopathology': {'signal.crop.start', 'target.scaled', 'level'},
    'reaction_time': {'window.trigger', 'target.scaled'},
    'schizophrenia_diagnosis': {'level'},
    'sentence': RETRIEVAL,
    'sex': {'signal.crop.start', 'level'},
    'sleep_arousal': {'Ghassemi2018You'},
    'sleep_onset': {'target.scaled', 'recipe.loss_scale', 'Ghassemi2018You'},
    'sleep_stage': {'window.trim.every', 'Ghassemi2018You'},
    'speech': RETRIEVAL | {'drop'},
    'typing': WITHIN,
    'video': RETRIEVAL,
    'word': RETRIEVAL | {'split'},
}


def test_version_2_changes_what_the_documents_say_and_nothing_else():
    text = (ROOT / 'docs' / 'differences.md').read_text().partition('## Version 2')[2]
    newer = {name: v for name, v in select.tasks().items() if len(v) > 1}
    fits = {'recipe.published'}  # of every task
    assert {name: changed(*versions) for name, versions in newer.items()} == {
        n: CHANGES.get(n, set()) | fits for n in FACTS
    }
    assert {t.version for v in newer.values() for t in v} == {1, 2}
    rows = [line.split('|')[1] for line in text.splitlines() if line.startswith('|')]
    told = {name for row in rows for name in re.findall(r'[a-z0-9_/]+', row)}
    assert {*CHANGES, 'all'} <= told


def test_version_2_of_p3_reads_every_dataset_from_200_ms_before_the_true_onset():
    first, second = select.tasks()['p3']
    for dataset in second.datasets:
        own, later = replace(BARE, name=dataset), 0.026 - 1 / 1024 if dataset == 'Kappenman2021ErpP3' else 0.0
        assert cells.apply(second, own, ()).window == replace(first.window, start=-0.2 + later)
        assert cells.apply(second, own, ()).signal.baseline == (0.0, 0.2)


@pytest.mark.parametrize('name', ['n170', 'n2pc', 'n400', 'p3'])
def test_version_2_begins_where_a_picture_of_erp_core_was_seen(name):
    """26 ms after its trigger, which MOABB has a sample of 1024 Hz late; other datasets are as they were."""
    for version, later in zip(select.tasks()[name], (0.0, 0.0250234375), strict=True):
        for dataset in version.datasets:
            if dataset.startswith('Kappenman') or dataset == 'Reichert2020Impact':
                start = cells.apply(version, replace(BARE, name=dataset), ()).window.start
                assert start == pytest.approx(-0.2 + later * dataset.startswith('Kappenman'), abs=1e-12)


def test_version_2_of_tasks_that_split_within_recordings_scales_them_by_the_training_part():
    """All tasks whose parts may share a recording: not by subject, release, session or run, which recordings are of."""
    apart = {'subject', 'release', 'session', 'run', 'split'}
    for task in (v[-1] for v in select.tasks().values() if v[-1].category not in OURS):
        for dataset in task.datasets:
            own = cells.apply(task, replace(BARE, name=dataset), ())
            by = own.split.field if isinstance(own.split, Predefined) else getattr(own.split, 'by', '')
            assert by in apart or own.signal.scaler == 'train', (task.full_name, dataset)
            if isinstance(own.split, ByBlock):
                assert own.split.gap >= task.window.duration / 2


# ---- suites ----


def test_suites_hold_the_published_tasks_and_the_corrected_ones():
    everything = {(name, 1) for name in FACTS}
    assert {pair for n, suite in SUITES.items() if n not in UNPUBLISHED for pair in suite.tasks} == everything
    assert set(SUITES['eeg-core-1.0'].tasks) == {(name, 1) for name in CORE_TASKS}
    assert set(SUITES['jbench-core'].tasks) == {(name, select.tasks()[name][-1].version) for name in CORE_TASKS}
    for name, suite in SUITES.items():
        device = name.partition('-')[0]
        assert all(t.partition('/')[0] == device for t, _ in suite.tasks) or device in ('eeg', 'jbench')
        assert suite.full == (name == 'eeg-full-1.0')


@pytest.mark.parametrize('name', sorted(select.tasks()))
def test_version_1_of_the_published_tasks_alone_repeats_the_published_fits(name):
    versions = select.tasks()[name]
    asked = [(t.version, t.recipe.published) for t in versions]
    assert asked == ([(1, True), (2, False)] if name in FACTS else [(1, False)])
    assert name in FACTS or versions[0].category in OURS
    assert all(FITS in t.supersedes[1] for t in versions[1:])


def test_the_full_suite_is_every_task_on_every_dataset(monkeypatch):
    names = {
        d for name, v in select.tasks().items() if '/' not in name and v[0].category not in OURS for d in v[0].datasets
    }
    known = select.datasets() | {n: replace(BARE, name=n) for n in names}
    monkeypatch.setattr(select, 'datasets', lambda: known)
    chosen = select.select_tasks('eeg-full-1.0')
    pairs = [(t.name, d.name if d else t.datasets[0]) for t, d in chosen]
    assert pairs == [(t.name, d) for t in dict.fromkeys(t for t, _ in chosen) for d in t.datasets]
    assert len(pairs) == len(set(pairs)) and {d for _, d in pairs} == names
    assert all(t.version == 1 and t.recipe.published for t, _ in chosen)
    assert [d and d.name for _, d in select.select_tasks('eeg-full-1.0/ern')] == [
        None,
        'Chavarriaga2010Learning',
        'Kueper2024Eeg',
    ]
    assert [d and d.name for _, d in select.select_tasks('eeg-core-1.0/ern')] == [None]
    assert [d and d.name for _, d in select.select_tasks('eeg-full-1.0/ern/Kueper2024Eeg')] == ['Kueper2024Eeg']


# ---- the command ----


@pytest.mark.parametrize('name', sorted(FACTS))
def test_what_is_said_of_a_task_is_there(name):
    from jbench.cli import catalogue

    said = catalogue.info(name, 'table')
    newest = select.tasks()[name][-1]
    assert re.search(rf'^version +{newest.version}$', said, re.M) and newest.title in said
    assert catalogue.info(f'{name}@1', 'json').startswith('{')
