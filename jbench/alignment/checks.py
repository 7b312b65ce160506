"""Whether a line of the table of benchmarks means something, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable

from jbench.alignment import ceiled, procedures, tree
from jbench.alignment.metrics import choices, regression
from jbench.spec.benchmark import Benchmark
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import from_json, to_json

HALVES = ('internal_consistency', 'cross_subject')
SUBJECTS = ('rsa_ceiling', 'leave_one_out', 'leave_one_out_pearson')
# of each procedure: its metrics, its ceilings
MEANT: dict[str, tuple[Iterable[str], Iterable[str]]] = {
    'neural': (
        (
            *regression.REGRESSIONS,
            *procedures.SIMILARITIES,
            *(procedures.OVER_TIME + name for name in regression.REGRESSIONS),
            'ost',
        ),
        (*HALVES, 'internal_consistency_temporal'),
    ),
    'train_test': (tuple(regression.REGRESSIONS), HALVES),
    'rsa': (('rdm', 'rsm'), SUBJECTS),
    'over_time': (('rdm',), ()),
    'labels': (('error_consistency', 'top1'), ('error_consistency',)),
    'choices': (tuple(choices.FORMS), tuple(choices.FORMS)),
    'odd_one_out': (('accuracy',), ()),
    'properties': (('ks_similarity',), ('ks_similarity',)),
}
NEURAL = ('neural', 'train_test')  # of which explained variance can be said
APART = ('train_test', 'rsa')  # that take the values of `per` apart


def check(benchmark: Benchmark) -> Benchmark:
    """The same benchmark. Raises: RequestError for a field of another type, a word that is none, and words that mean
    nothing together."""
    what = f'benchmark {benchmark.identifier}'
    if benchmark.procedure not in MEANT:
        raise unknown(f'procedure of {what}', str(benchmark.procedure), MEANT)
    if benchmark.ceiled not in ceiled.NAMES:
        raise unknown(f'ceiled of {what}', str(benchmark.ceiled), ceiled.NAMES)
    from_json(Benchmark, to_json(benchmark), what)
    metrics, limits = MEANT[benchmark.procedure]
    if benchmark.metric not in metrics:
        raise unknown(f'metric of {what} ({benchmark.procedure})', benchmark.metric, metrics)
    if benchmark.ceiling and benchmark.ceiling not in limits:
        raise unknown(f'ceiling of {what} ({benchmark.procedure})', benchmark.ceiling, limits)
    if benchmark.parent and benchmark.parent not in tree.PARENTS:
        raise unknown(f'parent of {what}', benchmark.parent, tree.PARENTS)
    if benchmark.ceiled.startswith('explained') and benchmark.procedure not in NEURAL:
        raise RequestError(f'{what}: ceiled={benchmark.ceiled!r} is of predicted responses; for {benchmark.procedure} '
                           "say 'ratio', or 'none'")  # fmt: skip
    if benchmark.ceiled == 'above_chance' and benchmark.chance is None:
        raise RequestError(
            f"{what}: ceiled='above_chance' needs chance: say chance=, as 1/3 where one of three is right"
        )
    if benchmark.per and benchmark.procedure not in APART:
        raise RequestError(f"{what}: per={benchmark.per!r} is of procedure='train_test' (neuroids) and 'rsa' (subjects "
                           f'or repetitions), not of {benchmark.procedure!r}; leave per out, or write a benchmark '
                           f'for each value: where=(({benchmark.per!r}, VALUE),)')  # fmt: skip
    if benchmark.ceiling == 'cross_subject' and benchmark.per and benchmark.constant_ceiling is None:
        raise RequestError(f"{what}: ceiling='cross_subject' is of all neuroids together, not of each {benchmark.per}; "
                           "leave per out, or say ceiling='internal_consistency'")  # fmt: skip
    limited = benchmark.ceiling or benchmark.constant_ceiling is not None
    halves = benchmark.ceiling == 'internal_consistency' and benchmark.constant_ceiling is None
    each = halves and benchmark.metric in regression.REGRESSIONS
    if benchmark.ceiled == 'explained_variance_per_neuroid' and limited and not each:
        raise RequestError(f'{what}: ceiled={benchmark.ceiled!r} needs a score and a ceiling of each neuroid: a '
                           "regression as metric, ceiling='internal_consistency', no constant_ceiling; or "
                           "say ceiled='explained_variance'")  # fmt: skip
    return benchmark
