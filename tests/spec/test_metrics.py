"""The table of metrics: what validation, scoring and tables read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jbench.plan import select
from jbench.report.scores import format_score
from jbench.spec.errors import RequestError
from jbench.spec.metrics import LEVELS, METRICS, of_kind
from jbench.spec.overrides import override, paths
from jbench.spec.task import TARGETS
from jbench.spec.validate import check

EVERY = [t for versions in select.tasks().values() for t in versions]


def test_rows_are_whole() -> None:
    for name, m in METRICS.items():
        assert name == m.name and m.kinds and set(m.kinds) <= set(TARGETS)
        assert m.bounds[0] < m.bounds[1] and m.perfect in (0.0, 1.0)
        assert m.levels[0] == 'window' and set(m.levels) <= set(LEVELS)
        assert m.chance is None or m.bounds[0] <= m.chance <= m.bounds[1]
        assert not m.monitor or METRICS[m.monitor].kinds == m.kinds
        assert format_score(0.5, name) == ('50.0' if m.unit else '0.500')


@pytest.mark.parametrize(
    ('kind', 'headline'),
    [
        ('classes', 'bal_acc'),
        ('state', 'bal_acc'),
        ('labels', 'f1_score_macro'),
        ('value', 'pearsonr'),
        ('embedding', 'top5_acc'),
        ('keystrokes', 'cer'),
        ('angles', 'angular_mae'),
    ],
)
def test_the_first_metric_of_a_kind_is_the_published_headline(kind: str, headline: str) -> None:
    assert of_kind(kind)[0] == headline
    published = [t for t in EVERY if t.version == 1 and t.revision and t.target.kind == kind]
    assert published and {t.metric for t in published} <= set(of_kind(kind))


def test_the_published_protocol_may_monitor_another_score() -> None:
    from jbench.train.fit import monitor_of

    for name, seen in {'image': 'batch_top5_acc', 'p3': 'bal_acc'}.items():
        published, ours = select.tasks()[name]
        assert monitor_of(published) == seen
        assert monitor_of(ours) == ours.metric


def test_what_a_target_may_be_taught_by_is_no_field_of_it() -> None:
    task = select.tasks()['p3'][-1]
    assert not [p for p in paths(task) if p.startswith(('target.losses', 'target.samplers'))]
    with pytest.raises(KeyError):
        override(task, 'target.losses', ('ctc',))


def test_weights_of_classes_are_refused_where_there_are_none() -> None:
    age = select.tasks()['age'][-1]
    with pytest.raises(RequestError, match=r'squared_error.* weighs no classes; only cross_entropy and binary_cross'):
        check(replace(age, recipe=replace(age.recipe, class_weights=True)))


def test_a_level_that_a_metric_is_not_defined_for_is_refused() -> None:
    check(replace(select.tasks()['age'][-1], level='recording'))
    with pytest.raises(RequestError, match=r"'keystrokes' are not averaged over a subject; only classes, state, value"):
        check(replace(select.tasks()['emg/typing'][-1], level='subject'))
