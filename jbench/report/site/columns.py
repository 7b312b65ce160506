"""Which fields of the records the pages show, and how."""

from __future__ import annotations

from jbench.report.scores import format_score
from jbench.report.site.markup import Addresses
from jbench.report.site.records import ALL, ON
from jbench.report.site.tables import Column, Record, Show
from jbench.spec.metrics import METRICS


def score_text(record: Record, key: str = 'mean', sd: str = 'sd', metric: str = 'metric') -> str:
    """A score as tables show it, its spread over seeds behind it."""
    if record[key] is None:
        return '–'
    spread = f' ± {format_score(record[sd], record[metric])}' if record.get(sd) else ''  # a baseline takes no seed
    return format_score(record[key], record[metric]) + spread


def interval_text(record: Record) -> str:
    """An interval as tables show it."""
    if record['low'] is None or record['high'] is None:
        return '–'
    return f'[{format_score(record["low"], record["metric"])}, {format_score(record["high"], record["metric"])}]'


def metric_text(record: Record) -> str:
    """The name of a score and its unit."""
    return record['metric'] + ' (%)' * (METRICS[record['metric']].unit == 'per cent')


def task_text(record: Record) -> str:
    """A task with its version."""
    return f'{record["task"]}@{record["version"]}'


def _number(key: str, digits: int) -> Show:
    def show(record: Record) -> str:
        text = '–' if record[key] is None else f'{record[key]:,.{digits}f}'
        return text[1:] if text.startswith('-') and not text.strip('-0.') else text  # no minus zero

    return show


def _listed(key: str) -> Show:
    return lambda record: ', '.join(record[key]) or '–'


def _identity(at: Addresses) -> dict[str, Column]:
    """The columns that say what a record is of, with links to the pages of it."""
    return {
        'model': Column('model', 'Model', show=_model, link=lambda r: at.models.get(r['model'], '')),
        'task': Column('task', 'Task', show=task_text, link=lambda r: at.tasks.get(task_text(r), '')),
        'dataset': Column('dataset', 'Dataset', show=_dataset, link=lambda r: at.datasets.get(r['dataset'], '')),
    }


def _model(record: Record) -> str:
    return str(record.get('title') or record['model'])


def _dataset(record: Record) -> str:
    simulated = record.get('simulated') or 'simulated' in record.get('changes', ())
    return record['dataset'] + ' (simulated)' * bool(simulated)


def scores(at: Addresses, *but: str) -> tuple[Column, ...]:
    """Of `records.of_scores`; `but`: fields that a page is about, which every row would repeat."""
    identity = _identity(at)
    of = [identity[name] for name in ('model', 'task') if name not in but]
    return (
        *of,
        Column('mean', 'Score', 'mean over the seeds ± standard deviation', score_text, number=True),
        Column(
            'low', '95 % interval', 'over test subjects, the ends of the seeds averaged', interval_text, number=True
        ),
        Column(
            'normalised',
            'Normalised',
            '0: the floor (the dummy baseline, else chance), 1: perfect; the bar shows its interval',
            _number('normalised', 3),
            number=True,
            bar=True,
        ),
        Column(
            'rank',
            'Rank',
            'among the models of an equal protocol: task, version, dataset, split, score and changes',
            lambda r: '–' if r['rank'] is None else f'{r["rank"]} of {r["of"]}',
            number=True,
            up=True,
        ),
        Column(
            'ece',
            'ECE',
            'expected calibration error, 15 bins of equal width; from predictions that lie beside the result',
            _number('ece', 3),
            number=True,
            up=True,
            spare=True,
        ),
        Column(
            'brier',
            'Brier',
            'Brier score, 0 to 2, mean over the seeds; from the predictions',
            _number('brier', 3),
            number=True,
            up=True,
            spare=True,
        ),
        Column(
            'auroc',
            'AUROC',
            'mean over the seeds, of what the score is of; where the answers are single classes',
            _number('auroc', 3),
            number=True,
            spare=True,
        ),
        *([identity['dataset']] if 'dataset' not in but else []),
        Column('changes', 'Changes', 'how the protocol departs from that of the task', _listed('changes')),
        Column('metric', 'Measure', 'what the score is', metric_text),
        Column('floor', 'Floor', 'what normalised scores count from', _floor, number=True),
        Column('n_seeds', 'Seeds', number=True, show=_number('n_seeds', 0)),
        Column('n_subjects', 'Subjects', 'that were tested', number=True, show=_number('n_subjects', 0)),
        Column('n_parameters', 'Parameters', number=True, show=_number('n_parameters', 0)),
        Column(
            'seconds_fit', 'Fit (s)', 'seconds of training, mean over the seeds', _number('seconds_fit', 1), number=True
        ),
        Column('family', 'Family', choose='Family'),
        Column('device', 'Device', 'that recorded', choose='Device'),
        Column('category', 'Category', choose='Category'),
        Column('suites', 'Suite', 'pinned sets of tasks that hold it', _listed('suites'), choose='Suite'),
        Column(
            'origin', 'Origin', 'own: from result files; published: from a table of the literature', choose='Origin'
        ),
        Column(
            'overlap',
            'Pretraining',
            'clean: the model has not seen this dataset; unknown: not all corpora of its weights are listed here, or '
            "the weights are a file of one's own",
            only=('Clean only: not pretrained on the dataset', 'clean'),
        ),
    )


def _floor(record: Record) -> str:
    return format_score(record['floor'], record['metric'])


def standings(at: Addresses) -> tuple[Column, ...]:
    """Of `records.of_standings`."""
    return (
        _identity(at)['model'],
        Column(
            'mean_normalised_rank',
            'Norm. rank',
            'mean over tasks of (rank - 1) / (models of the table - 1): 0 the best, 1 the last',
            _number('mean_normalised_rank', 3),
            number=True,
            up=True,
        ),
        Column(
            'mean_rank', 'Mean rank', 'over the tasks that the model has', _number('mean_rank', 2), number=True, up=True
        ),
        Column(
            'mean_normalised_rank_complete',
            'Rank, complete',
            'normalised rank over the datasets that all models of the table have, but for those with scores on few',
            _number('mean_normalised_rank_complete', 3),
            number=True,
            up=True,
        ),
        Column(
            'mean_normalised_score',
            'Norm. score',
            'mean over tasks; 0: the floor, 1: perfect',
            _number('mean_normalised_score', 3),
            number=True,
        ),
        Column('wins', 'Wins', 'datasets on which no model is better', _number('wins', 0), number=True),
        Column('n_tasks', 'Tasks', 'with a score', _number('n_tasks', 0), number=True),
        Column(
            'n_missing',
            'Missing',
            'tasks of the table without a score of it',
            _number('n_missing', 0),
            number=True,
            up=True,
        ),
        Column(
            'marks', 'Marks', 'how its scores depart from the tasks: all, or some of them', _listed('marks'), spare=True
        ),
        Column('over', 'Over', 'the tasks that the ranks are over', choose='Over', start=ALL),
        Column('on', 'With scores on', 'of few a mean says little', choose='With scores on', start=ON[False]),
        Column('origin', 'Origin', 'own and published models are ranked apart', choose='Origin', start='own'),
        Column('family', 'Family', choose='Family'),
    )


def results(at: Addresses) -> tuple[Column, ...]:
    """Of `records.of_results`."""
    return (
        *_identity(at).values(),
        Column('seed', 'Seed', number=True, show=lambda r: str(r['seed'])),
        Column('value', 'Score', show=lambda r: score_text(r, 'value'), number=True),
        Column('low', '95 % interval', 'over test subjects', interval_text, number=True),
        Column('metric', 'Measure', show=metric_text),
        Column('changes', 'Changes', 'how the protocol departs from that of the task', _listed('changes')),
        Column('n_windows', 'Windows', 'that were tested', _number('n_windows', 0), number=True),
        Column('seconds', 'Seconds', 'preparation aside', _number('seconds', 1), number=True),
        Column('hardware', 'Computed on', choose='Computed on'),
        Column('date', 'Date'),
        Column('jbench', 'jbench', 'its version'),
        Column('path', 'File', widest=90),
    )


def reproductions(at: Addresses) -> tuple[Column, ...]:
    """Of `records.of_reproductions`."""
    identity = _identity(at)
    return (
        identity['task'],
        identity['dataset'],
        Column('paper', 'Paper', 'published mean ± standard deviation over seeds', _paper, number=True),
        Column(
            'own', 'Ours', 'mean ± standard deviation over seeds', lambda r: score_text(r, 'own', 'own_sd'), number=True
        ),
        Column('low', '95 % interval', 'of ours, over test subjects', interval_text, number=True),
        Column('difference', 'Difference', 'ours less the published mean', show=_difference, number=True),
        Column('verdict', 'Verdict', 'whether the interval of ours holds the published mean', choose='Verdict'),
        Column('metric', 'Measure', show=metric_text),
        Column('differences', 'Declared differences', show=lambda r: '; '.join(r['differences']) or '–', widest=80),
    )


def _paper(record: Record) -> str:
    return '–' if record['paper'] is None else score_text(record, 'paper', 'paper_sd', 'paper_metric')


def _difference(record: Record) -> str:
    if record['difference'] is None:
        return '–'
    text = format_score(record['difference'], record['metric'])
    return text if record['difference'] < 0 else f'+{text}'


def _fraction(key: str) -> Show:
    return lambda record: '–' if record[key] is None else f'{record[key]:.3f}'


BRAINS = (
    Column('benchmark', 'Benchmark', widest=45),
    Column('model', 'Model', choose='Model'),
    Column('score', 'Score', 'beside the ceiling where there is one', show=_fraction('score'), number=True),
    Column('error', 'Error', 'over splits, carried through the ceiling', show=_fraction('error'), number=True),
    Column('raw', 'Raw', 'before the ceiling', show=_fraction('raw'), number=True),
    Column('ceiling', 'Ceiling', show=_fraction('ceiling'), number=True),
    Column('seeds', 'Seeds', 'of the model', number=True),
    Column('notes', 'Notes', widest=70),
)
TREE = (
    Column('model', 'Model', choose='Model'),
    Column('node', 'Node', choose='Node'),
    Column('score', 'Score', show=_fraction('score'), number=True),
    Column('scored', 'Children with a score', number=True),
    Column('children', 'Children', number=True),
)
