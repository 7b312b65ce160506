"""The command with benchmarks: right use, wrong flags, missing data, a second run, files of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from jbench import run
from jbench.progress import Interrupted
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.stores import replaced

PAGE = Path(__file__).parents[2] / 'docs' / 'add_a_benchmark.md'
EXAMPLE = re.search(r'```python\n(# my_v4.py.*?)```', PAGE.read_text(), re.DOTALL)[1]
SENTENCES = '--task=alignment/GeneratedSentences.language-ridge'


@pytest.fixture
def ask(tmp_path, capfd):
    """The command in a work folder of its own: status, stdout, stderr."""

    def asked(*argv):
        status = run.main([*argv, f'--workdir={tmp_path}/work'])
        return status, *capfd.readouterr()

    return asked


def test_a_score_is_computed_once_and_kept(ask, tmp_path):
    status, out, err = ask(SENTENCES, '--model=word_counts,category')
    assert status == 0 and 'GeneratedSentences.language-ridge@1  category' in out
    assert 'simulated: the recording was generated' in out
    paths = sorted((tmp_path / 'work' / 'results').rglob('seed33.json'))
    assert len(paths) == 2
    result = result_file.read(paths[1])
    assert (
        result['kind'] == 'alignment'
        and result['simulated']
        and result['config']['digests'].keys() == {*('recording', 'stimuli', 'features', 'model')}
    )
    before = [path.stat().st_mtime_ns for path in paths]
    status, again, err = ask(SENTENCES, '--model=word_counts,category')
    assert status == 0 and again == out and err.count('finished before') == 2
    assert [path.stat().st_mtime_ns for path in paths] == before
    assert ask(SENTENCES, '--model=word_counts', '--if_exists=fail')[0] == 2
    assert 'finished before' not in ask(SENTENCES, '--model=word_counts', '--if_exists=overwrite')[2]


def test_an_interrupted_overwrite_goes_on_with_what_it_had_not_reached(ask, tmp_path, monkeypatch):
    from jbench.alignment import run_benchmark

    both = (SENTENCES, '--model=word_counts,category')
    assert ask(*both)[0] == 0
    old = {path: path.read_bytes() for path in (tmp_path / 'work' / 'results').rglob('seed33.json')}
    scored, calls = run_benchmark.benchmark.scored, list[int]()

    def stopped(*args):
        calls.append(1)
        if len(calls) == 2:
            raise Interrupted
        return scored(*args)

    with monkeypatch.context() as change:
        change.setattr(run_benchmark.benchmark, 'scored', stopped)
        status, _, err = ask(*both, '--if_exists=overwrite')
    assert status == 75 and 'overwrite: 2 results set aside' in err
    assert 'with --if_exists=resume goes on from there; with overwrite it begins anew' in err
    first, second = sorted(old, key=lambda path: 'word_counts' not in str(path))
    new, aside = first.read_bytes(), second.with_name('seed33.json.replaced')
    assert not second.exists() and aside.read_bytes() == old[second]
    assert not first.with_name('seed33.json.replaced').exists()
    status, _, err = ask(*both, '--if_exists=resume')
    assert status == 0 and err.count('finished before') == 1 and first.read_bytes() == new
    assert second.exists() and not [*(tmp_path / 'work').rglob('*.replaced')]


def test_overwriting_leaves_results_whose_data_are_missing(ask, tmp_path, monkeypatch):
    from jbench.alignment import benchmark, run_benchmark

    def absent(*args):
        raise RequestError('data missing: other')

    assert ask(SENTENCES, '--model=word_counts')[0] == 0
    monkeypatch.setattr(benchmark, 'state', lambda *args: 'made here; data missing: other')
    monkeypatch.setattr(run_benchmark, 'recordings', absent)
    status, _, err = ask(SENTENCES, '--model=word_counts', '--if_exists=overwrite')
    assert status == 2 and 'not run' in err and 'set aside' not in err
    assert [*(tmp_path / 'work' / 'results').rglob('seed33.json')]


@pytest.mark.parametrize('what', ['build', 'recordings'])
def test_overwriting_leaves_the_results_of_what_cannot_run(what, ask, tmp_path, monkeypatch):
    from jbench.alignment import run_benchmark

    def refused(*args):
        raise RequestError('pip install jbench[stimuli]')

    def kept():
        return {p.name: p.read_bytes() for p in home.iterdir() if p.is_file()}

    assert ask(SENTENCES, '--model=word_counts')[0] == 0
    (home,) = {path.parent for path in (tmp_path / 'work' / 'results').rglob('seed33.json')}
    old = kept()
    with monkeypatch.context() as change:
        change.setattr(run_benchmark, what, refused)
        status, _, err = ask(SENTENCES, '--model=word_counts', '--if_exists=overwrite')
        assert status == 2 and 'pip install jbench[stimuli]; old results count as before\n' in err
        assert kept() == old and 'seed33.npz' in old
        replaced.put_aside(home / 'seed33.json')  # by an overwriting that was interrupted
        status, _, err = ask(SENTENCES, '--model=word_counts', '--if_exists=resume')
        assert status == 2 and 'pip install jbench[stimuli]\n' in err
        assert kept().keys() == {f'{name}.replaced' for name in old}, 'a further command would take it for a new one'
        assert ask(SENTENCES, '--model=word_counts', '--if_exists=overwrite')[0] == 2 and kept() == old
    assert 'finished before' in ask(SENTENCES, '--model=word_counts')[2]


def test_overwriting_goes_on_past_a_store_that_is_away_and_asks_it_once_a_benchmark(ask, tmp_path, monkeypatch):
    """What it cannot look at stays until there is a new result, which is computed if the store is there again."""
    from jbench.alignment import benchmark

    both = (f'{SENTENCES},alignment/Cowley2023.V4-pls', '--model=word_counts,category')
    ask(*both)
    before = {path: path.read_bytes() for path in (tmp_path / 'work' / 'results').rglob('seed33.json')}
    state, asked = benchmark.state, list[str]()

    def away(wanted, *more):
        asked.append(wanted.identifier)
        if len(asked) == 1:
            raise OSError('no answer')
        return state(wanted, *more)

    monkeypatch.setattr(benchmark, 'state', away)
    status, out, err = ask(*both, '--if_exists=overwrite')
    assert len(asked) == len({*asked}) == 2
    assert status == 1 and out.count('GeneratedSentences') == 2 and 'finished before' not in err
    assert err.count('not run: alignment/Cowley2023') == 2 and 'Traceback' not in err and 'set aside' not in err
    assert len(before) == 2 and all(path.read_bytes() != old for path, old in before.items())


def test_all_results_of_a_work_folder_are_shown(ask, tmp_path):
    ask(SENTENCES, '--model=word_counts')
    status, out, _ = ask('--stage=report')
    assert status == 0 and 'GeneratedSentences.language-ridge@1  word_counts' in out
    (line,) = json.loads(ask('--stage=report', '--format=json')[1])
    assert line['benchmark'] == 'GeneratedSentences.language-ridge'
    (path,) = (tmp_path / 'work' / 'results').rglob('seed33.json')
    assert run.main(['cite', str(path)]) == 0


def test_the_same_numbers_come_again(ask, tmp_path):
    ask(SENTENCES, '--model=word_counts')
    (path,) = (tmp_path / 'work' / 'results').rglob('seed33.json')
    first, arrays = result_file.read(path), np.load(path.with_suffix('.npz'))['values']
    ask(SENTENCES, '--model=word_counts', '--if_exists=overwrite')
    second = result_file.read(path)
    assert first['headline'] == second['headline'] and first['config'] == second['config']
    assert np.array_equal(arrays, np.load(path.with_suffix('.npz'))['values'], equal_nan=True)


@pytest.mark.parametrize(
    ('argv', 'reason'),
    [
        ((SENTENCES,), '--model is missing'),
        ((SENTENCES, '--model=pixel'), "unknown candidate 'pixel'; did you mean 'pixels'?"),
        (('--task=alignment/V4,p3', '--model=pixels'), 'ask for one kind'),
        ((SENTENCES, '--model=pixels', '--set=recipe.lr=1'), '--set: decoding alone uses it'),
        ((SENTENCES, '--model=,'), 'nothing is named'),
        (('--task=alignment/V2-texture', '--model=pixels'), 'unknown benchmark'),
        (('--task=alignment/V4@7', '--model=pixels'), 'a node of the tree, which has no version'),
        (('--task=Alignment/Cowley2023.V4-pls', '--model=pixels'), 'data missing: Cowley2023'),
        ((SENTENCES, '--model=pixels', '--debug'), '--debug: decoding alone uses it'),
        ((SENTENCES, '--model=pixels', '--stage=download'), '--stage=download: alignment has no stages'),
        ((SENTENCES, '--model=pixels', '--weights=nowhere'), 'no such file or folder'),
        ((SENTENCES, '--model=pixels', f'--weights={__file__}'), 'none of pixels takes weights'),
        ((SENTENCES, '--model=pixels'), "unknown region of pixels 'language'"),
        (('--task=alignment/MajajHong2015.V4-pls', '--model=pixels'), 'data missing: MajajHong2015.private'),
        (('--task=alignment/Cowley2023.V4-pls', '--model=pixels'), 'data missing: Cowley2023'),
        (('--task=alignment/Geirhos2021sketch-top1', '--model=resnet50_answers'), 'data missing: Geirhos2021'),
    ],
)
def test_a_wrong_request_is_one_message_and_status_2(ask, argv, reason):
    status, out, err = ask(*argv)
    assert status == 2 and out == '' and reason in err and 'Traceback' not in err


def test_of_a_group_those_that_are_here_run(ask):
    status, out, err = ask('--task=alignment/average_language,alignment/V2', '--model=word_counts')
    assert status == 0 and 'GeneratedSentences' in out
    assert 'not run: alignment/FreemanZiemba2013.V2-pls word_counts: data missing' in err


def test_the_plan_says_what_is_here_and_writes_nothing(ask, tmp_path):
    status, out, _ = ask('--task=alignment/V4', '--model=pixels', '--dry_run', '--format=json')
    plan = {line['benchmark']: line['data'] for line in json.loads(out)}
    assert status == 0 and plan['Cowley2023.V4-pls@1'].startswith('data missing')
    assert not (tmp_path / 'work').exists()


def test_lists_and_facts(ask):
    assert 'Kar2019-ost' in ask('--list')[1]
    assert json.loads(ask('--list', '--format=json')[1])['candidates'][0]['name'] == 'pixels'
    assert 'explained_variance' in ask('--info=alignment/Cowley2023.V4-pls')[1]
    assert 'log-Gabor' in ask('--info=gabor')[1]


def test_a_file_of_ones_own_runs_as_the_page_shows(ask, tmp_path):
    (tmp_path / 'my_v4.py').write_text(EXAMPLE)
    status, out, _ = ask(f'--task=alignment/{tmp_path}/my_v4.py', '--model=pixels')
    assert status == 0
    score, raw, ceiling = re.search(r'Made2026.V4-ridge@1 +pixels +(\S+) ± \S+ +(\S+) +(\S+)', out).groups()
    assert float(ceiling) > 0.9 and 0.3 < float(raw) < 1 and float(score) < 1.2


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('BENCHMARKS = 3', 'expected BENCHMARKS, a tuple'),
        (EXAMPLE.replace("'neural'", "'neurl'"), 'neurl'),
        (EXAMPLE.replace("'Made2026'", "'KarITneuron'"), 'KarITneuron: a recording that jbench has already'),
        ('1 / 0', 'line 1: ZeroDivisionError: division by zero'),
        (EXAMPLE.replace('np.random.default_rng(0)', 'nothing'), "NameError: name 'nothing' .* line"),
        (EXAMPLE.replace("'repetition': ", "'stimulus_id': "), 'stimulus_id'),
        (EXAMPLE.replace("'Made2026.V4-ridge'", "'Kar2019-ost'"), 'a benchmark that jbench has already'),
    ],
)
def test_a_wrong_file_of_ones_own_says_where(ask, tmp_path, text, reason):
    (tmp_path / 'mine.py').write_text(text)
    status, _, err = ask(f'--task=alignment/{tmp_path}/mine.py', '--model=pixels')
    assert status == 2 and re.search(reason, err) and 'Traceback' not in err


def test_features_of_a_file_and_a_model_of_ones_own(ask, tmp_path):
    ids = np.array([f'sentence{k:02d}' for k in range(1, 61)])
    np.savez(tmp_path / 'mine.npz', stimulus_id=ids, features=np.random.default_rng(0).normal(size=(60, 5)))
    status, out, _ = ask(SENTENCES, f'--model={tmp_path}/mine.npz')
    assert status == 0 and 'mine@' in out
    (tmp_path / 'my_v4.py').write_text(EXAMPLE)
    (tmp_path / 'my_model.py').write_text(
        'import hashlib\nimport jax.numpy as jnp\n'
        'from jbench.alignment.image_model import ImageModel, Preprocess\n\n\n'
        'def mine(seed):\n'
        "    apply = lambda x: {'mean': x.mean((1, 2))}\n"
        "    return ImageModel('mine', ('mean',), Preprocess(16), apply, hashlib.sha256(b'mine').hexdigest())\n"
    )
    status, out, _ = ask(f'--task=alignment/{tmp_path}/my_v4.py', f'--model={tmp_path}/my_model.py:mine')
    raw = re.search(r'mine@\w+ +\S+ ± \S+ +(\S+)', out)[1]
    assert status == 0 and float(raw) > 0.9  # the mean colour is what the made neurons see
    (tmp_path / 'my_model.py').write_text(
        (tmp_path / 'my_model.py').read_text().replace('x.mean((1, 2))', 'x[:, 0, 0]')
    )
    changed = ask(f'--task=alignment/{tmp_path}/my_v4.py', f'--model={tmp_path}/my_model.py:mine')[1]
    assert re.search(r'mine@\w+ +\S+ ± \S+ +(\S+)', changed)[1] != raw  # kept activations of another file do not count
