"""The pages of the site as (address, markup) pairs, and the files of their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jbench.report import calibrations, marks
from jbench.report.aggregate import Score
from jbench.report.site import columns, facts, records
from jbench.report.site.markup import Addresses, escape, link, page, tag
from jbench.report.site.markup import facts as listed
from jbench.report.site.tables import Column, Record, Table, as_csv, as_json, html
from jbench.results.index import LeftOut, Row

CHOICES = ('device', 'category', 'family', 'access', 'licence')  # facts that the lists of pages filter by
BRAINS = 'brains.html'
NO_FIGURES = 'None: a report without matplotlib, or of results that no figure can be made of.'


class Figure(NamedTuple):
    """A line of the index of the figures."""

    stem: str  # of its files
    kind: str  # 'bars', 'dataset'
    task: str  # '' for a figure over tasks
    dataset: str
    title: str


class Content(NamedTuple):
    """What the site is made of."""

    scores: list[Score]  # own and published, of all protocols
    rows: list[Row]  # the results that count
    left_out: list[LeftOut]
    figures: Sequence[Figure]  # that are in figures/
    at: Addresses
    foot: str
    beside: calibrations.Found  # calibration of the rows
    alignment: Sequence[Mapping[str, Any]] = ()  # results of models beside brains


Files = Iterator[tuple[str, str]]  # address, text


def every(content: Content) -> Files:
    """All files of the site but its style and scripts."""
    table = records.of_scores(content.scores, content.beside)
    yield from _index(content, table)
    yield from _results(content)
    yield from _left_out(content)
    yield from _figures(content)
    yield from _tasks(content, table)
    yield from _models(content, table)
    yield from _datasets(content, table)
    yield from _brains(content)


class Page(NamedTuple):
    """A page before it is markup."""

    address: str
    title: str
    here: str  # the part of the site that it belongs to
    body: Sequence[str]  # pieces of markup
    tables: Sequence[Table] = ()
    after: Sequence[str] = ()  # pieces below the tables


def _write(what: Page, content: Content) -> Files:
    """A page, and the files of its tables beside it."""
    stem = what.address.removesuffix('.html')
    root = '../' * stem.count('/')
    pieces = list(what.body)
    for table in what.tables:
        pieces.append(html(table, root, f'{stem.rpartition("/")[2]}.{table.name}'))
        if table.records:
            yield f'{stem}.{table.name}.csv', as_csv(table.records)
            yield f'{stem}.{table.name}.json', as_json(table.records)
    without = () if content.alignment else (BRAINS,)
    body = [*pieces, *what.after]
    yield what.address, page(what.title, body, root=root, here=what.here, foot=content.foot, without=without)


def _lead(title: str, words: str) -> list[str]:
    return [tag('h1', escape(title)), tag('p', escape(words), **{'class': 'lead'})]


def _index(content: Content, table: Sequence[Record]) -> Files:
    """The leaderboard."""
    kinds = Counter(s.origin for s in content.scores)
    many = {k: len({getattr(s, k) for s in content.scores}) for k in ('task', 'dataset', 'model')}
    words = (
        f'{many["model"]} models on {many["task"]} tasks and {many["dataset"]} datasets: {kinds["own"]:,} scores of '
        f'{len(content.rows):,} result files'
    )
    words = marks.titled(words, marks.of_many([s for s in content.scores if s.origin == 'own']))
    words += f', {kinds["published"]:,} published scores beside them' if kinds['published'] else ''
    standing = records.of_standings(content.scores)
    ranked = 'A rank is a place among the models of an equal protocol; the mean is over tasks. Less is better.'
    scored = (
        'One model on one dataset of one task, its seeds averaged. Only rows of an equal protocol are ranked together.'
    )
    tables = (
        Table('models', 'Models by rank', columns.standings(content.at), standing, ranked),
        Table('scores', 'Scores', columns.scores(content.at), table, scored, search=True),
    )
    body = _lead('Leaderboard', f'{words}.')
    yield from _write(Page('index.html', 'Leaderboard', 'index.html', body, tables), content)


def _results(content: Content) -> Files:
    words = 'Every result file that counts: one seed of one model on one dataset of one task.'
    table = Table('results', 'Result files', columns.results(content.at), records.of_results(content.rows), search=True)
    yield from _write(Page('results.html', 'Results', 'results.html', _lead('Results', words), [table]), content)


def _left_out(content: Content) -> Files:
    words = (
        'Results that do not count, each with the reason. Those of an older version or of another protocol stand among '
        'the scores, but not in the ranks over all tasks.'
    )
    kinds = [x.reason.partition(': ') for x in content.left_out]
    lines = [{'kind': k, 'reason': why, 'path': x.path} for (k, _, why), x in zip(kinds, content.left_out, strict=True)]
    shown = (
        Column('kind', 'Kind', choose='Kind'),
        Column('reason', 'Reason', widest=70),
        Column('path', 'File', widest=70),
    )
    table = Table('left_out', 'Left out', shown, lines, search=True)
    yield from _write(Page('left_out.html', 'Left out', 'left_out.html', _lead('Left out', words), [table]), content)


def _by(table: Iterable[Record], key: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in table:
        found.setdefault(columns.task_text(record) if key == 'task' else record[key], []).append(record)
    return found


def _paths(scores: Iterable[Score], key: str) -> dict[str, list[str]]:
    """The result files of each task, model or dataset."""
    found: dict[str, list[str]] = {}
    for s in scores:
        name = f'{s.task}@{s.version}' if key == 'task' else getattr(s, key)
        found.setdefault(name, []).extend(s.paths)
    return found


def _best(group: Sequence[Record]) -> str:
    """The models that are first, on each dataset of a task or a dataset."""
    names = dict.fromkeys(marks.titled(str(r['title'] or r['model']), r['changes']) for r in group if r['rank'] == 1)
    return ', '.join(list(names)[:3]) + (' ...' if len(names) > 3 else '')


def _overview(
    kind: str, groups: Mapping[str, Sequence[Record]], facts_of: Mapping[str, Record], content: Content
) -> Files:
    """A page that lists the tasks, models or datasets."""
    at: Mapping[str, str] = getattr(content.at, kind)
    lines = []
    for name in sorted(groups):
        group = groups[name]
        counts = {k: len({r[k] for r in group}) for k in ('task', 'dataset', 'model')}
        lines.append({'name': name, **facts_of[name], **counts, 'scores': len(group), 'best': _best(group)})
    title = kind.capitalize()
    mine = {'tasks': 'task', 'models': 'model', 'datasets': 'dataset'}[kind]
    shown = [Column('name', title.removesuffix('s'), link=lambda r: at.get(r['name'], ''))]
    if lines:
        shown += [
            Column(k, k.capitalize(), choose=k.capitalize() * (k in CHOICES), widest=45)
            for k in facts_of[lines[0]['name']]
        ]
    shown += [Column(k, f'{k.capitalize()}s', number=True) for k in ('task', 'dataset', 'model') if k != mine]
    shown.append(Column('scores', 'Scores', number=True))
    if kind != 'models':
        shown.append(Column('best', 'Best', 'first of a protocol'))
    table = Table(kind, f'All {kind}', tuple(shown), lines, search=True)
    words = f'{len(lines)} with scores.'
    yield from _write(Page(f'{kind}.html', title, f'{kind}.html', _lead(title, words), [table]), content)


def _tasks(content: Content, table: Sequence[Record]) -> Files:
    groups, paths, said = _by(table, 'task'), _paths(content.scores, 'task'), {}
    hashes: dict[str, set[tuple[str, str]]] = {}
    for row in content.rows:
        hashes.setdefault(f'{row.task}@{row.version}', set()).add((row.dataset, row.split_hash))
    for name, group in groups.items():
        first = group[0]
        task = facts.task_of(first['task'], first['version'], paths[name])
        said[name] = {'title': task.title if task else '', **{k: first[k] for k in ('device', 'category', 'metric')}}
        about = facts.about_task(task) if task else facts.unknown(name)
        about['Suites'] = escape(', '.join(dict.fromkeys(s for r in group for s in r['suites'])))
        splits = sorted(hashes.get(name, ()))
        about['Splits'] = escape('; '.join(f'{d}: {h}' for d, h in splits[:20]) + ' ...' * (len(splits) > 20))
        but = ('task', 'dataset') if len({r['dataset'] for r in group}) == 1 else ('task',)
        about['Dataset'] = link(group[0]['dataset'], f'../{content.at.datasets[group[0]["dataset"]]}') * (len(but) > 1)
        body = [*_lead(name, said[name]['title']), listed(about)]
        body += [_details(facts.every_field(task))] if task else []
        shown = Table('scores', 'Scores', columns.scores(content.at, *but), group, search=len(group) > 30)
        mine = [f for f in content.figures if f.task == first['task'] and f'{name}, ' in f.title]
        yield from _write(Page(content.at.tasks[name], name, 'tasks.html', body, [shown], _pictures(mine)), content)
    yield from _overview('tasks', groups, said, content)


def _models(content: Content, table: Sequence[Record]) -> Files:
    groups, paths, said = _by(table, 'model'), _paths(content.scores, 'model'), {}
    scores: dict[str, list[Score]] = {}
    for s in content.scores:
        scores.setdefault(s.model, []).append(s)
    for name, group in groups.items():
        model = facts.model_of(name, paths[name])
        title = (model.title if model else '') or str(group[0]['title'] or name)
        said[name] = {'title': title, 'family': group[0]['family']}
        about = facts.about_model(model) if model else facts.unknown(name)
        about['Name'] = escape(name)
        body = [*_lead(title, 'How it scores, and whether published scores are met.'), listed(about)]
        body += [_details(facts.every_field(model))] if model else []
        card = Table(
            'reproduction',
            'Reproduction card',
            columns.reproductions(content.at),
            records.of_reproductions(scores[name]),
            'The published number beside ours. What version 1 of a task, which is as published, does otherwise all the '
            'same is told in docs/differences.md.',
        )
        shown = Table('scores', 'Scores', columns.scores(content.at, 'model'), group, search=len(group) > 30)
        yield from _write(Page(content.at.models[name], title, 'models.html', body, [card, shown]), content)
    yield from _overview('models', groups, said, content)


def _datasets(content: Content, table: Sequence[Record]) -> Files:
    groups, paths, said = _by(table, 'dataset'), _paths(content.scores, 'dataset'), {}
    for name, group in groups.items():
        dataset = facts.dataset_of(name, paths[name])
        access = dataset.access.partition(':')[0] if dataset else ''
        said[name] = {
            'title': dataset.title if dataset else '',
            'device': group[0]['device'],
            'licence': dataset.licence if dataset else '',
            'access': access,
        }
        about = facts.about_dataset(dataset) if dataset else facts.unknown(name)
        body = [*_lead(name, said[name]['title']), listed(about)]
        shown = Table('scores', 'Scores', columns.scores(content.at, 'dataset'), group, search=len(group) > 30)
        mine = [f for f in content.figures if f.dataset == name and f.kind == 'dataset']
        yield from _write(
            Page(content.at.datasets[name], name, 'datasets.html', body, [shown], _pictures(mine)), content
        )
    yield from _overview('datasets', groups, said, content)


def _brains(content: Content) -> Files:
    """Models beside brains: scores, and the tree; no page where there are none."""
    if not content.alignment:
        return
    words = 'How brain-like models are: their responses to stimuli beside those of neurons, voxels and people.'
    scored = 'One model on one benchmark; beside the ceiling where there is one, else raw. Brain-Score has the words.'
    means = 'The mean of the children of each node; what has no score counts 0, and how many have one stands beside it.'
    tables = (
        Table('scores', 'Scores', columns.BRAINS, records.of_brains(content.alignment), scored, search=True),
        Table('tree', 'Tree', columns.TREE, records.of_tree(content.alignment), means, search=True),
    )
    mine = [f for f in content.figures if f.kind.startswith('alignment')]
    body = _lead('Brains', words)
    yield from _write(Page(BRAINS, 'Brains', BRAINS, body, tables, _pictures(mine, '')), content)


def _details(fields: Mapping[str, str]) -> str:
    lines = ''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in fields.items())
    return f'<details><summary>Every field</summary><dl>{lines}</dl></details>'


def _figures(content: Content) -> Files:
    """The figures over all tasks."""
    mine = [f for f in content.figures if not f.task]
    body = _lead('Figures', 'Over all tasks; those of one task are on its page.' if mine else NO_FIGURES)
    yield from _write(Page('figures.html', 'Figures', 'figures.html', [*body, *_pictures(mine, '')]), content)


def _pictures(figures: Sequence[Figure], root: str = '../') -> list[str]:
    """Figures, each with the data that it shows."""
    lines = [
        f'<figure><a href="{root}figures/{f.stem}.svg"><img src="{root}figures/{f.stem}.svg" alt="{escape(f.title)}" '
        f'loading="lazy"></a><figcaption>{escape(f.title)} <a href="{root}figures/{f.stem}.csv" download>CSV</a>'
        '</figcaption></figure>'
        for f in figures
    ]
    return [tag('h2', 'Figures') * bool(root), tag('div', ''.join(lines), **{'class': 'figures'})] if lines else []
