"""What is no measurement says so beside its score."""

from __future__ import annotations

from test_ranks import made

from jbench.report import marks, matrix


def test_titles_say_what_departs():
    assert marks.titled('a', ()) == 'a'
    assert marks.titled('a', ('simulated', 'custom: lr=1', 'custom: b')) == 'a (simulated, custom)'


def test_marks_of_many_say_whether_all_have_them():
    two = [made('a', 0.9, changes=('simulated', 'partial: subjects')), made('b', 0.8, changes=('simulated',))]
    assert marks.of_many(two) == ['some partial', 'simulated']
    assert marks.of_many([]) == []


def test_rows_of_the_matrix_are_marked():
    row = {'task': 'p3', 'task_version': 2, 'dataset': 'D', 'metric': 'auroc', 'model': 'a', 'mean': 0.5}
    text = matrix.text([{**row, 'changes': ('debug',)}, {**row, 'task': 'age'}], 100, ['a'])
    assert 'p3@2 (debug), auroc' in text and 'age@2, auroc' in text
