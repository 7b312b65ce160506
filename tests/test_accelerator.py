"""benchmarks/accelerator.py: what it counts and deals out, and that it works, at toy sizes on a processor."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from places import ROOT

from jbench.spec.errors import RequestError


@pytest.fixture
def benchmark(monkeypatch):
    """A module of benchmarks/, by its name."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if str(ROOT / 'benchmarks') in str(getattr(sys.modules[name], '__file__', '')):
            del sys.modules[name]


FULL = lax.Precision.HIGHEST


def mixed(a: jax.Array, x: jax.Array) -> dict[str, jax.Array]:
    """Products in a loop of 5, in a branch, in a convolution."""
    looped, _ = lax.scan(lambda c, _: (jnp.matmul(c, a, precision=FULL), None), a, length=5)
    chosen = lax.cond(a[0, 0] > 0, lambda m: jnp.matmul(m, m, precision=FULL), lambda m: m, looped)
    y = lax.conv_general_dilated(x, jnp.ones((2, 3, 7)), (1,), 'VALID', precision=FULL)
    return {'chosen': chosen, 'y': y}


def test_operations_are_those_of_the_products_as_often_as_they_run(benchmark):
    products = benchmark('products')
    a, x = jnp.eye(4), jnp.ones((2, 3, 20))
    matrix, convolution = 2 * 4**3, 2 * (2 * 2 * 14) * (3 * 7)
    assert products.operations(jax.make_jaxpr(mixed)(a, x)) == 6 * matrix + convolution
    both = jax.make_jaxpr(jax.vmap(mixed, in_axes=(0, None)))(jnp.stack([a] * 3), x)
    assert products.operations(both) == 3 * 6 * matrix + convolution  # of a stack, both branches; x is the same
    assert products.operations(jax.make_jaxpr(jnp.fft.rfft)(jnp.ones((3, 64)))) == 2.5 * 3 * 64 * 6


@pytest.mark.slow
def test_operations_of_a_network_of_torch_are_those_of_its_products(benchmark):
    torch = pytest.importorskip('torch')
    products, (rows, tokens, width) = benchmark('products'), (6, 5, 4)
    x = torch.randn(rows, tokens, width)

    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q[:, None], q[:, None], q[:, None]).mean((1, 2))

    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(tokens * width, 3))
    of_linear = 2 * rows * tokens * width * 3
    found = products.torch_operations(linear, x, torch.zeros(rows, dtype=torch.long))
    assert found == {'eval': of_linear, 'train': 2 * of_linear}  # of the windows none is asked for
    mixed = torch.nn.Sequential(torch.nn.Linear(width, width), Attention())
    of_mixed = 2 * rows * tokens * width * width, 2 * 2 * rows * tokens**2 * width
    found = products.torch_operations(mixed, x, torch.zeros(rows, dtype=torch.long))
    assert found == {'eval': sum(of_mixed), 'train': 2 * of_mixed[0] + 3 * of_mixed[1]}
    assert all(rate > 0 for rate in products.rates_of_cores().values())


@pytest.mark.slow
def test_by_default_changes_the_precision_of_every_product_and_nothing_else(benchmark):
    products = benchmark('products')
    args = jnp.eye(4) * 0.5, jnp.ones((2, 3, 20))
    changed = products.by_default(jax.value_and_grad(lambda a, x: mixed(a, x)['chosen'].sum()))
    plain = jax.value_and_grad(lambda a, x: mixed(a, x)['chosen'].sum())
    assert 'HIGHEST' in str(jax.make_jaxpr(plain)(*args)) and 'HIGHEST' not in str(jax.make_jaxpr(changed)(*args))
    jax.tree.map(np.testing.assert_array_equal, changed(*args), plain(*args))  # a processor has one precision


def test_a_device_is_known_by_the_beginning_of_its_name_or_not_at_all(benchmark):
    products = benchmark('products')
    assert products.peak('NVIDIA H100 80GB HBM3') == products.PEAKS['NVIDIA H100']
    assert products.peak('NVIDIA H100 PCIe') == products.PEAKS['NVIDIA H100 PCIe']
    assert products.peak('TPU v5 lite') == products.PEAKS['TPU v5 lite'] != products.peak('TPU v5')
    assert [products.peak(kind) for kind in ('cpu', 'NVIDIA L40S', 'NVIDIA H1000')] == [None] * 3
    h100 = products.PEAKS['NVIDIA H100']
    assert [h100.of(p) for p in ('float32', 'default', 'bfloat16')] == [67, 494.5, 989.4]


def test_every_network_has_its_rows_and_eegnet_comes_first(benchmark):
    accelerator = benchmark('accelerator')
    every = accelerator.parts(['eegnet', 'labram'], False)
    assert sum(p.share for p in every) == pytest.approx(1)
    rows = [row for p in every for row in p.rows]
    assert len({str(r) for r in rows}) == len(rows)
    asked = {(r.what, r.seeds) for r in rows if r.part == 'step' and r.model == 'labram'}
    assert asked == {(p, n) for p in ('float32', 'bfloat16') for n in (1, 3, 8, 32)} | {('default', 1)}
    assert {r.what for r in rows if r.part == 'torch'} == {'float32', 'bfloat16', 'compiled'}
    assert every[2].rows[0] == accelerator.Row('step', 'eegnet', 'float32', 3)


def fact(part: str, model: str, what: str, seeds: int = 1, **more: object) -> dict[str, object]:
    return {'part': part, 'model': model, 'what': what, 'seeds': seeds, **more}


SHAPE = {'batch': 64, 'n_chans': 64, 'n_times': 480, 'memory_gb': 0.5}
FACTS = {
    'head': {'device': 'NVIDIA H100 80GB HBM3', 'count': 1, 'machine': 'x86_64, 16 cores', 'toy': False}
    | {'backend': 'gpu', 'jax': '0.10', 'commit': 'abc', 'date': '2026-01-01'},
    'rows': [
        fact('step', 'eegnet', 'float32', ms=2.0, operations=67e9, bytes=3350e6, **SHAPE),
        fact('step', 'eegnet', 'bfloat16', ms=1.0, operations=0.0, bytes=0.0, **SHAPE),
        fact('step', 'eegnet', 'float32', 3, ms=3.0, operations=0.0, bytes=0.0, **SHAPE),
        fact('step', 'labram', 'float32', failed='needs 90 GB, 78 can be had'),
        fact('torch', 'eegnet', 'float32', ms=8.0),
        fact('numerics', 'eegnet', 'float32', default=[1e-3, 2e-3], processor=[1e-6, 2e-6]),
    ],
    'skipped': {'whole': 'no time'},
}


def test_tables_hold_what_was_measured_shares_of_peaks_and_ratios(benchmark):
    made = benchmark('accelerator_tables').tables(FACTS)
    first = made['steps'].splitlines()[2].strip('| ').split(' | ')
    assert first[:3] == ['eegnet', '64 x 64 x 480', '2'] and first[5] == '8' and first[8] == '**4.0**'
    assert first[9:] == ['50 % / –', '50 % / –', '0.5']  # 67 GFLOP and 3.35 GB in 2 ms
    assert made['seeds'].splitlines()[2] == '| eegnet | float32 | 2 | 1 | **8.0** |'  # three of 8 ms, in 3
    assert 'needs 90 GB' in made['steps'] and '5 measured, 1 failed' in made['device']
    assert made['precision'].splitlines()[2] == '| eegnet | 1e-06 / 2e-06 | 1e-03 / 2e-03 | – |'
    assert made['command'] == '(none measured)' and 'left out: whole | no time' in made['device']
    unknown = benchmark('accelerator_tables').tables(FACTS | {'head': FACTS['head'] | {'device': 'cpu'}})
    assert 'not in the table of peaks' in unknown['device'] and '50 %' not in unknown['steps']


def test_the_page_has_a_place_for_each_table_and_a_page_without_is_refused(benchmark, tmp_path):
    tables, marks = benchmark('accelerator_tables'), benchmark('marks')
    page = shutil.copy(ROOT / 'docs' / 'accelerator.md', tmp_path / 'page.md')
    made = {name: f'table of {name} \\1' for name in tables.NAMES}
    for _ in range(2):
        marks.write(page, 'accelerator', made)
    text = page.read_text()
    assert all(text.count(f'-->\n{table}\n<!--') == 1 for table in made.values()) and '(none measured)' not in text
    page.write_text('# Another\n')
    with pytest.raises(RequestError, match='expected the marks'):
        marks.write(page, 'accelerator', made)


NONE = '**No figure'  # begin the words above the tables, where there is none


def test_the_page_says_that_no_figure_exists_as_long_as_none_does(benchmark, tmp_path):
    tables, marks, page = benchmark('accelerator_tables'), benchmark('marks'), tmp_path / 'page.md'
    shutil.copy(ROOT / 'docs' / 'accelerator.md', page)
    assert ('(none measured)\n<!-- accelerator: end of device -->' in page.read_text()) == (NONE in page.read_text())
    assert 'python benchmarks/accelerator.py --write' in page.read_text()
    for head, none in (({'backend': 'cpu'}, True), ({'toy': True}, True), ({}, False)):
        marks.write(page, 'accelerator', tables.tables(FACTS | {'head': FACTS['head'] | head}))
        assert (NONE in page.read_text()) == none, head
    assert 'Measured on NVIDIA H100 80GB HBM3, 2026-01-01.\n' in page.read_text()


@pytest.mark.slow
def test_a_process_is_killed_when_its_time_is_over_and_what_a_crash_took_is_told(benchmark, tmp_path, monkeypatch):
    accelerator = benchmark('accelerator')
    script = tmp_path / 'benchmarks' / 'accelerator_rows.py'
    script.parent.mkdir()
    monkeypatch.setattr(accelerator, 'ROOT', tmp_path)
    head = 'import json, os, sys, time\nflags = [a.partition("=")[2] for a in sys.argv[2:4]]\n'
    head += 'rows, out = json.load(open(flags[0])), open(flags[1], "a")\n'
    head += 'def tell(**w): print(json.dumps(w), file=out, flush=True)\n'
    name = "' '.join(map(str, r.values()))"
    works = f"for r in rows:\n  tell(begun={name})\n  WHAT\n  tell(row=r | {{'ms': 1.0}})\n"
    rows = [accelerator.Row('torch', m, 'float32') for m in ('a', 'b', 'c')]

    script.write_text(head + works.replace('WHAT', 'os._exit(3) if r["model"] == "b" else None'))
    found, why = accelerator.measured('torch', rows, time.time() + 60, [], tmp_path / 'log')
    assert [(r['model'], r.get('failed', '')) for r in found] == [
        *[('a', ''), ('b', 'its process ended with status 3'), ('c', '')]
    ]
    script.write_text(head + works.replace('WHAT', 'time.sleep(60) if r["model"] == "b" else None'))
    found, why = accelerator.measured('torch', rows, time.time() + 2, [], tmp_path / 'log')
    assert [r['model'] for r in found] == ['a'] and why == ''  # the others were not reached: no word of them
    script.write_text(head + 'tell(skipped="no torch")\n')
    assert accelerator.measured('torch', rows, time.time() + 60, [], tmp_path / 'log') == ([], 'no torch')
    script.write_text('raise ValueError')
    found, why = accelerator.measured('torch', rows, time.time() + 60, [], tmp_path / 'log')
    assert found == [] and 'ended with status 1' in why


COMMAND = [sys.executable, str(ROOT / 'benchmarks' / 'accelerator.py')]


@pytest.mark.slow
@pytest.mark.parametrize(
    ('flags', 'said'),
    [
        (['--models=eegnet2'], "unknown network 'eegnet2'"),
        (['--minutes=0', '--json=none.json'], 'no figures there'),
        (['--minutes=0', '--json=cut.json'], 'cut.json: no figures that can be read'),
    ],
)
def test_a_request_that_cannot_be_met_says_why(flags, said, tmp_path):
    (tmp_path / 'cut.json').write_text('{"head": {"device": "X')
    done = subprocess.run([*COMMAND, *flags], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and 'Traceback' not in done.stderr


def test_a_file_that_holds_no_figures_is_one_error_and_stays(benchmark, tmp_path):
    accelerator, path = benchmark('accelerator'), tmp_path / 'kept.json'
    whole = json.dumps(FACTS)
    path.write_text(whole)
    assert accelerator.kept(path, FACTS['head'])['rows'] == FACTS['rows']
    row, head = ({**FACTS, 'rows': [{'part': 'step'}]}, {**FACTS, 'head': {'toy': False}})
    wrong = [whole[:-9], '', '{}', '[]', '3', *map(json.dumps, (row, head, {**FACTS, 'skipped': None}))]
    for text in wrong:
        path.write_text(text)
        with pytest.raises(RequestError, match=r'kept\.json: no figures that can be read; expected JSON'):
            accelerator.kept(path, FACTS['head'])
        assert path.read_text() == text
    with pytest.raises(RequestError, match='no figures that can be read'):
        accelerator.kept(tmp_path, FACTS['head'])


@pytest.mark.long
def test_one_command_measures_everything_at_toy_sizes(tmp_path):
    page, kept = tmp_path / 'page.md', tmp_path / 'kept' / 'accelerator.json'
    shutil.copy(ROOT / 'docs' / 'accelerator.md', page)
    flags = ['--toy', '--minutes=20', f'--json={kept}', f'--page={page}', '--write']  # a minute, if nothing else runs
    done = subprocess.run([*COMMAND, *flags], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr + kept.with_suffix('.log').read_text()
    facts = json.loads(kept.read_text())
    found = {(r['part'], r['model'], r['what'], r['seeds']): r for r in facts['rows'] if 'failed' not in r}
    for model in ('eegnet', 'signal_jepa_post_local'):
        for what, n in (('float32', 1), ('float32', 3), ('bfloat16', 1), ('default', 1)):
            row = found['step', model, what, n]
            assert row['ms'] > 0 and row['operations'] > 0 and row['bytes'] > 0 and row['memory_gb'] > 0
        one, three = (found['step', model, 'float32', n]['operations'] for n in (1, 3))
        assert 2 * one < three <= 3 * one  # what depends on windows alone is shared
        apart = found['numerics', model, 'float32', 1]
        assert max(apart['default']) == 0 < min(apart['bfloat16']) < max(apart['bfloat16']) < 0.2
    assert found['whole', 'eegnet', 'cvep', 1]['again_s'] > 0
    torch = [r for r in facts['rows'] if r['part'] == 'torch']
    assert torch or 'torch' in facts['skipped']
    text = page.read_text()
    assert '(toy sizes: no figures)' in text and '| eegnet | 4 x 8 x 240 |' in text

    again = subprocess.run([*COMMAND, *flags], capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and 'steps:' not in again.stdout  # nothing is measured twice
    assert json.loads(kept.read_text())['rows'] == facts['rows']
    refused = subprocess.run([*COMMAND, '--minutes=0', f'--json={kept}', '--write'], capture_output=True, text=True)
    assert refused.returncode == 2 and 'figures of toys' in refused.stderr


def test_it_ends_when_its_time_is_over_whatever_a_device_does(benchmark, tmp_path, monkeypatch):
    """Processes that answer once and then hang, and a clock that goes on where somebody sleeps."""
    accelerator, started, now = benchmark('accelerator'), [], [0.0]
    seconds = 60 * accelerator.MINUTES
    assert seconds < 9 * 60

    class Hangs:
        def __init__(self, command: list[str], **how: object) -> None:
            flags = dict(word.split('=', 1) for word in command if '=' in word)
            rows, head = json.loads(Path(flags['--rows']).read_text()), command[2] == 'head'
            said = {'head': FACTS['head']} if head else {'row': rows[0] | {'failed': 'x'}}
            Path(flags['--out']).write_text(json.dumps(said) + '\n')
            self.pid, self.returncode = len(started), 0 if head else None
            started.append(self)

        def poll(self) -> int | None:
            return self.returncode

        def wait(self) -> None:
            assert self.returncode is not None, 'it would wait for ever'

    def sleep(s: float) -> None:
        now[0] += s
        assert now[0] < 2 * seconds, 'it goes on'

    monkeypatch.setattr(accelerator, 'time', SimpleNamespace(time=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(accelerator.subprocess, 'Popen', Hangs)
    monkeypatch.setattr(accelerator.os, 'killpg', lambda pid, how: setattr(started[pid], 'returncode', -how))
    kept, parts = tmp_path / 'accelerator.json', accelerator.parts(['eegnet', 'labram'], False)
    assert accelerator.main(['--models=eegnet,labram', f'--json={kept}']) == 0
    assert [p.returncode for p in started] == [0, *[-9] * len(parts)]
    assert now[0] == pytest.approx(seconds, abs=2 * len(parts) * accelerator.LOOK)
    assert [r['what'] for r in json.loads(kept.read_text())['rows']] == [part.rows[0].what for part in parts]


def test_one_part_alone(benchmark, tmp_path, monkeypatch, capsys):
    accelerator, asked = benchmark('accelerator'), []
    monkeypatch.setattr(accelerator, 'measure', lambda todo, *_: asked.extend(part.name for part in todo) or FACTS)
    assert accelerator.main(['--parts=torch,steps', f'--json={tmp_path / "kept.json"}']) == 0
    assert asked == ['steps', 'torch']
    assert accelerator.main(['--parts=stepz']) == 2
    assert "unknown part 'stepz'; did you mean 'steps'?" in capsys.readouterr().err
