"""Downloads from hosts by their own lists: each API on this machine, with the faults of hosts; archives; MOABB."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import host_apis
import pytest
from serve import Fault, Server, serving

from jbench import files
from jbench.data.download import archives, file_list, hosts, http, wanted_files
from jbench.data.download import fetch as download_fetch
from jbench.data.sources import moabb
from jbench.data.stimuli import embed
from jbench.models import MODELS
from jbench.plan import select, weights
from jbench.spec import encoders
from jbench.spec.checkpoints import BANKS, CHECKPOINTS, Checkpoint
from jbench.spec.dataset import Download
from jbench.spec.errors import RequestError

WHOLE = bytes(range(256)) * 600
FILES = {'a.edf': WHOLE, 'parts.edf': b'in two parts', 'sub/b [1].edf': b'second', 'sub/c+d é.tsv': b'third'}
PLAIN = dataclasses.replace(select.datasets()['Zyma2019Electroencephalograms'], name='Plain', download=None)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(http, 'WAITS', (0.0, 0.0, 0.0))
    monkeypatch.setattr(hosts, 'PAGE', 2)
    for name in hosts.TOKENS.values():
        monkeypatch.delenv(name, raising=False)


class Host(NamedTuple):
    """A place, the scheme of its address, and its server: `start(script)`, or `start(api=...)` with another API."""

    scheme: str
    place: Download
    start: Callable[..., AbstractContextManager[Server]]

    @property
    def files(self) -> dict[str, bytes]:
        """What must come."""
        return {Path(n).name: c for n, c in FILES.items()} if self.scheme in host_apis.FLAT else FILES


@pytest.fixture
def served(tmp_path) -> Path:
    """The folder from which hosts serve."""
    return tmp_path / 'served'


def host_of(url: str, served: Path, monkeypatch) -> Host:
    """A host with the files, and the user's token where it asks for one."""
    scheme = url.partition(':')[0]
    for name, content in FILES.items():
        path = served / host_apis.FOLDERS.get(scheme, '') / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if scheme == 'synapse':
        monkeypatch.setenv('SYNAPSE_AUTH_TOKEN', host_apis.TOKEN)
    return Host(
        scheme, Download(url=url), lambda script=None, api=host_apis.APIS[url]: serving(served, script, api=api)
    )


@pytest.fixture(params=host_apis.APIS)
def host(request, served, monkeypatch) -> Host:
    return host_of(request.param, served, monkeypatch)


def fetch(place: Download, folder: Path, server: Server, monkeypatch) -> list[str]:
    """Fetch from a place; what is said meanwhile."""
    for name in hosts.HOSTS:
        monkeypatch.setitem(hosts.HOSTS, name, server.url + ('' if name == 's3' else 'api/'))
    said: list[str] = []
    dataset = dataclasses.replace(PLAIN, download=place)
    download_fetch.fetch(dataset, folder, lambda *facts: said.append(' '.join(map(str, facts))), said.append)
    return said


def there(folder: Path) -> dict[str, bytes]:
    """Every file under a folder but those of jbench."""
    found = [p for p in folder.rglob('*') if p.is_file() and not p.name.startswith('.download')]
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def refusal(place: Download, folder: Path, server: Server, monkeypatch) -> str:
    with pytest.raises(RequestError) as error:
        fetch(place, folder, server, monkeypatch)
    assert there(folder) == {} or not any(n in FILES for n in there(folder))
    assert 'hunter2' not in str(error.value)
    return str(error.value)


# ---- every host ----


def test_every_host_gives_its_files_page_by_page_with_their_sums(host, tmp_path, monkeypatch):
    with host.start() as server:
        said = fetch(host.place, tmp_path / 'd', server, monkeypatch)
        assert there(tmp_path / 'd') == host.files
        before = len(server.asked)
        again = fetch(host.place, tmp_path / 'd', server, monkeypatch)
        assert len(server.asked) == before, 'the list is kept: a second run asks nothing'
    assert f'{tmp_path / "d"}: 4 files to fetch, 0.2 MB' in said
    assert ': 4 fetched' in said[-1] and ': 0 fetched, 4 were there' in again[-1]
    assert ('of 1 the host tells the size alone' in said[-1]) == (host.scheme in ('s3', 'openneuro'))
    kinds = {f.kind for f in kept(tmp_path / 'd')}
    expected = {'osf': {'sha256'}, 'hf': {'sha256', 'git'}, 'nemar': {'sha256', 'git'}}
    expected |= {scheme: {'md5', 'size'} for scheme in ('s3', 'openneuro')}
    assert kinds == expected.get(host.scheme, {'md5'})


def kept(folder: Path) -> list[file_list.File]:
    return [file_list.File(*line) for line in json.loads((folder / file_list.KEPT).read_text())[1]]


def name_at(host: Host, name: str) -> str:
    """A file's path at the server."""
    return f'{host_apis.FOLDERS[host.scheme]}/{name}' if host.scheme in host_apis.FOLDERS else name


def test_a_wrong_sum_is_kept_aside_and_a_broken_connection_is_resumed(host, tmp_path, monkeypatch):
    name = name_at(host, 'a.edf')
    with host.start({name: [Fault(body=WHOLE[::-1])] * 2}) as server:
        message = refusal(host.place, tmp_path / 'd', server, monkeypatch)
        assert 'expected' in message and f'remove {file_list.KEPT}' in message
        assert (tmp_path / 'd' / 'a.edf.bad').read_bytes() == WHOLE[::-1]
        server.script[name] = [Fault(drop=100_000)]
        fetch(host.place, tmp_path / 'd', server, monkeypatch)
        assert server.starts(name)[-2] == 0 < server.starts(name)[-1] and there(tmp_path / 'd') == host.files


def test_a_host_that_is_busy_or_breaks_off_is_asked_again(host, tmp_path, monkeypatch):
    later = (('Retry-After', '0'),)
    faults = [{'status': 429, 'headers': later, 'body': None}, {'status': 503, 'body': None}, {'drop': 9}]

    def api(server, asked):
        answer = host_apis.APIS[host.place.url](server, asked)
        listed = answer is not None and answer.body is not None
        return dataclasses.replace(answer, **faults.pop(0)) if listed and faults else answer

    with host.start(api=api) as server:
        said = fetch(host.place, tmp_path / 'd', server, monkeypatch)
    assert there(tmp_path / 'd') == host.files and not faults
    assert all(
        any(f': {w}' in s and 'the next attempt' in s for s in said) for w in ('429 ', '503 ', 'Connection broken')
    )


def test_a_refusal_says_what_to_do(host, tmp_path, monkeypatch):
    variable = hosts.TOKENS.get(host.scheme)
    for status in (401, 403, 404):
        with host.start(api=lambda server, asked, status=status: Fault(status=status)) as server:
            message = refusal(host.place, tmp_path / 'd', server, monkeypatch)
            assert f': {status} ' in message and len(server.asked) == 1
        if status == 404:
            assert 'look at the page of the dataset' in message
        elif host.scheme == 'synapse':
            assert f'the host refuses the token in {variable}' in message
        elif variable:
            assert f'set {variable} to a token of that account' in message


def test_another_form_of_answer_is_one_error(host, tmp_path, monkeypatch):
    for body in (b'', b'[]', b'{}', b'null', b'<html>log in', b'{"data": 3, "files": [{}], "page": 0}'):
        with host.start(api=lambda server, asked, body=body: Fault(body=body)) as server:
            message = refusal(host.place, tmp_path / 'd', server, monkeypatch)
        assert 'in a form that jbench does not know' in message or 'expected at least one file' in message
        assert not (tmp_path / 'd' / file_list.KEPT).exists()


@pytest.mark.parametrize('url', [u for u in host_apis.APIS if u.startswith(('s3', 'osf', 'hf', 'synapse'))])
def test_a_page_that_leads_to_itself_is_an_error(served, tmp_path, monkeypatch, url):
    host, first = host_of(url, served, monkeypatch), []

    def api(server, asked):
        first.append(host_apis.APIS[url](server, asked))
        return first[0]

    with host.start(api=api) as server:
        assert 'does not know' in refusal(host.place, tmp_path / 'd', server, monkeypatch)
        assert len(server.asked) < 5


def test_a_name_that_stands_twice_at_figshare_has_the_number_of_its_file(served, tmp_path, monkeypatch):
    host = host_of('figshare:12', served, monkeypatch)
    (served / 'other').mkdir()
    (served / 'other' / 'A.edf').write_bytes(b'another')
    with host.start() as server:
        fetch(host.place, tmp_path / 'd', server, monkeypatch)
    others = {n: c for n, c in host.files.items() if n != 'a.edf'}
    assert there(tmp_path / 'd') == {'100_a.edf': WHOLE, '101_A.edf': b'another', **others}


# ---- names, addresses, tokens ----


@pytest.mark.parametrize('name', ['../x', '/etc/passwd', 'a/../../x', 'a\\x', 'x.part', '.download.json'])
def test_a_name_that_leads_elsewhere_is_refused(served, tmp_path, monkeypatch, name):
    host = host_of('nemar:nm000001/latest', served, monkeypatch)
    entry = {'path': name, 'size': 3, 'checksum_algorithm': 'git', 'checksum': 'a' * 40, 'url': 'x'}
    with host.start(api=lambda server, asked: host_apis.answer([entry])) as server:
        assert repr(name)[1:-1] in refusal(host.place, tmp_path / 'd', server, monkeypatch)
        assert len(server.asked) == 1
        (tmp_path / 'd').mkdir(exist_ok=True)
        (tmp_path / 'd' / file_list.KEPT).write_text(json.dumps([host.place.url, [[name, server.url, 3, 'size', '']]]))
        assert repr(name)[1:-1] in refusal(host.place, tmp_path / 'd', server, monkeypatch)
        (tmp_path / 'd' / file_list.KEPT).write_text(f'["{host.place.url}", 1]')
        assert 'no list of files' in refusal(host.place, tmp_path / 'd', server, monkeypatch)


@pytest.mark.parametrize('url', ['file:///etc/passwd', 'ftp://127.0.0.1/a'])
def test_a_file_at_no_https_address_is_refused(served, tmp_path, monkeypatch, url):
    host = host_of('zenodo:12', served, monkeypatch)
    entry = {'key': 'a.edf', 'size': 3, 'checksum': 'md5:' + 'a' * 32, 'links': {'self': url}}
    with host.start(api=lambda server, asked: host_apis.answer({'files': [entry]})) as server:
        assert 'not at https' in refusal(host.place, tmp_path / 'd', server, monkeypatch)


@pytest.mark.parametrize('url', ['hf:datasets/o/n', 'synapse:syn12', 'zenodo:12'])
def test_a_token_goes_to_its_own_host_alone(served, tmp_path, monkeypatch, url):
    for variable in hosts.TOKENS.values():
        monkeypatch.setenv(variable, f' {host_apis.TOKEN}\n')
    host = host_of(url, served, monkeypatch)
    with host.start() as server:
        said = fetch(host.place, tmp_path / 'd', server, monkeypatch)
        assert not any('hunter2' in s for s in said)
        assert bool(server.tokens) == (host.scheme in hosts.TOKENS)
        assert all(n.startswith('api/') and t == f'Bearer {host_apis.TOKEN}' for n, t in server.tokens)
        assert {'a.edf', 'sub/b [1].edf'} <= {n for n, _ in server.asked} - {n for n, _ in server.tokens}
    assert 'hunter2' not in (tmp_path / 'd' / file_list.KEPT).read_text()


@pytest.mark.parametrize('token', ['', 'wrong-hunter2', 'hunter2 with\nlines', 'hunter2-é'])
def test_a_token_that_is_missing_wrong_or_no_token_is_one_error(served, tmp_path, monkeypatch, token):
    host = host_of('synapse:syn12', served, monkeypatch)
    monkeypatch.setenv('SYNAPSE_AUTH_TOKEN', token)
    with host.start() as server:
        message = refusal(host.place, tmp_path / 'd', server, monkeypatch)
        assert 'SYNAPSE_AUTH_TOKEN' in message and len(server.asked) <= 1


def test_a_gated_set_is_fetched_only_where_its_host_knows_the_user(served, tmp_path, monkeypatch):
    """No agreement is ever given: without a token nothing is asked, and the steps say what to do."""
    host = host_of('synapse:syn12', served, monkeypatch)
    monkeypatch.delenv('SYNAPSE_AUTH_TOKEN')
    gated = dataclasses.replace(PLAIN, download=host.place, access='agreement: accept the terms of use at Synapse')
    said: list[str] = []
    assert download_fetch.fetch_all([gated], tmp_path, lambda *facts: None, said.append).by_hand == ['Plain']
    assert 'jbench cannot fetch it before SYNAPSE_AUTH_TOKEN is the token of an account' in said[0]
    monkeypatch.setenv('SYNAPSE_AUTH_TOKEN', host_apis.TOKEN)
    assert download_fetch.can_fetch(gated) and 'fetched by --download' in download_fetch.steps(gated)
    monkeypatch.setenv('HF_TOKEN', 'x')
    other = dataclasses.replace(gated, download=Download(url='zenodo:12'))
    assert not download_fetch.can_fetch(other), 'a host that does not know who asks'


def test_weights_come_from_their_hub_and_stay(served, tmp_path, monkeypatch):
    """At a revision, one file alone; a second run asks for nothing; terms are accepted by nobody but the user."""
    host = host_of('hf:models/o/n', served, monkeypatch)
    for name in ('model.safetensors', 'config.json'):
        (served / name).parent.mkdir(exist_ok=True)
        (served / name).write_bytes(name.encode() * 100)
    tiny = Checkpoint('hf:models/o/n@v1', 'model.safetensors', 'MIT')
    monkeypatch.setitem(CHECKPOINTS, 'tiny', tiny)
    said: list[str] = []

    def get() -> object:
        return download_fetch.fetch_all([], tmp_path, lambda *facts: None, said.append, [], ['tiny'])

    with host.start() as server:
        monkeypatch.setitem(hosts.HOSTS, 'hf', f'{server.url}api/')
        assert get() == (['tiny'], [], [])
        where = 'https://huggingface.co/o/n at revision v1'
        assert said[0] == f'weights of tiny: model.safetensors of {where}, licence: MIT'
        assert set(there(tmp_path / 'weights' / 'tiny')) == {'model.safetensors'}
        (listed,) = (f for f in kept(tmp_path / 'weights' / 'tiny') if f.name == 'model.safetensors')
        assert listed.url.endswith(f'/resolve/{host_apis.HEADS["v1"]}/model.safetensors'), 'a branch is its commit'
        digest = files.sha256_file(tmp_path / 'weights' / 'tiny' / 'model.safetensors')
        started = dataclasses.replace(MODELS['biot'], name='tiny', weights=digest)
        facts = {'place': 'hf:models/o/n', 'revision': host_apis.HEADS['v1'], 'sha256': digest, 'licence': 'MIT'}
        assert weights.origin(started, tmp_path) == {**facts, 'file': 'model.safetensors'}
        assert weights.origin(dataclasses.replace(started, own_weights=True), tmp_path) is None
        assert weights.origin(started, None)['revision'] == 'v1', 'what was asked for'
        n_asked = len(server.asked)
        assert get() == (['tiny'], [], []) and len(server.asked) == n_asked
        monkeypatch.setitem(CHECKPOINTS, 'tiny', tiny._replace(folder='gated', access='terms'))
        assert get() == ([], ['tiny'], []) and len(server.asked) == n_asked
        assert 'https://huggingface.co/o/n at' in said[-1] and 'accept its terms there, then set HF_TOKEN' in said[-1]
        monkeypatch.setenv('HF_TOKEN', host_apis.TOKEN)
        assert get() == (['tiny'], [], [])
        pinned = tiny._replace(url=f'hf:models/o/n@{host_apis.HEADS["main"]}', folder='pinned')
        n_asked = len(server.asked)
        monkeypatch.setitem(CHECKPOINTS, 'tiny', pinned._replace(sha256='0' * 64))
        assert get() == ([], [], ['tiny'])
        assert 'the host lists another file' in said[-1] and digest in said[-1] and '--weights=FILE' in said[-1]
        assert not (tmp_path / 'weights' / 'pinned' / 'model.safetensors').exists()
        assert not any('/revision/' in name for name, _ in server.asked[n_asked:]), 'a commit is asked for at once'
        monkeypatch.setitem(CHECKPOINTS, 'tiny', pinned._replace(sha256=digest))
        assert get() == (['tiny'], [], [])
    assert not any('hunter2' in s for s in said)


def test_places_of_electrodes_come_with_the_weights_that_go_by_them(served, tmp_path, monkeypatch):
    """They are open where the weights are not."""
    host = host_of('hf:models/o/n', served, monkeypatch)
    (served / 'positions.json').write_text('{}')
    (served / 'model.safetensors').write_bytes(b'weights')
    tiny = Checkpoint('hf:models/o/n', 'model.safetensors', 'MIT', access='terms', bank='tiny_places')
    monkeypatch.setitem(CHECKPOINTS, 'tiny', tiny)
    monkeypatch.setitem(BANKS, 'tiny_places', Checkpoint('hf:models/o/n', 'positions.json', 'MIT'))
    said: list[str] = []
    with host.start() as server:
        monkeypatch.setitem(hosts.HOSTS, 'hf', f'{server.url}api/')
        outcome = download_fetch.fetch_all([], tmp_path, lambda *facts: None, said.append, [], ['tiny'])
        assert outcome.by_hand == ['tiny'] and set(there(tmp_path / 'weights' / 'tiny_places')) == {'positions.json'}
        assert said[0] == 'places of electrodes for tiny: positions.json of https://huggingface.co/o/n, licence: MIT'
        (listed,) = (f for f in kept(tmp_path / 'weights' / 'tiny_places') if f.name == 'positions.json')
        assert host_apis.HEADS['main'] in listed.url and listed.kind == 'git'
        (tmp_path / 'weights' / 'tiny_places' / 'positions.json').unlink()
        outcome = download_fetch.fetch_all([], tmp_path, lambda *facts: None, said.append, [], ['tiny_places'])
        assert outcome.there == ['tiny_places'] and 'positions.json' in there(tmp_path / 'weights' / 'tiny_places')
        monkeypatch.setenv('HF_TOKEN', host_apis.TOKEN)
        assert download_fetch.fetch_weights('tiny', tmp_path, lambda *facts: None, said.append)
    assert (tmp_path / 'weights' / 'tiny' / 'model.safetensors').read_bytes() == b'weights'


def test_only_what_is_wanted_of_a_list_is_fetched(served, tmp_path, monkeypatch):
    host = host_of('hf:datasets/o/n', served, monkeypatch)
    with host.start() as server:
        fetch(dataclasses.replace(host.place, files='*.edf', without='sub/*'), tmp_path / 'd', server, monkeypatch)
        assert set(there(tmp_path / 'd')) == {'a.edf', 'parts.edf'}
        nothing = dataclasses.replace(host.place, files='*.fif')
        with pytest.raises(RequestError, match=r'names no file like \*\.fif'):
            fetch(nothing, tmp_path / 'e', server, monkeypatch)


def test_an_encoder_comes_from_its_hub_without_what_is_not_read(served, tmp_path, monkeypatch):
    """Where vectors made elsewhere lie, or the data set makes its own, none is needed."""
    host = host_of('hf:models/o/n', served, monkeypatch)
    for name in ('config.json', 'pytorch_model.bin', 'model.safetensors', 'onnx/model.onnx', 'tiny-any.whl'):
        (path := served / name).parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    monkeypatch.setitem(encoders.ENCODERS, 'tiny', encoders.Encoder('o/n', 'text', 4))
    said: list[str] = []
    with host.start() as server:
        monkeypatch.setitem(hosts.HOSTS, 'hf', f'{server.url}api/')
        outcome = download_fetch.fetch_all([], tmp_path, lambda *facts: None, said.append, ['tiny'])
        assert outcome == (['tiny'], [], [])
        assert set(there(tmp_path / 'encoders' / 'tiny')) == {'config.json', 'model.safetensors'}
        monkeypatch.setitem(encoders.ENCODERS, 'tiny', encoders.Encoder('o/n', 'word', 4, files='*'))
        download_fetch.fetch_encoder('tiny', tmp_path / 'all', lambda *facts: None, said.append)
        all_ = tmp_path / 'all' / 'encoders' / 'tiny'
        assert set(there(all_)) == {
            *FILES,
            'config.json',
            'pytorch_model.bin',
            'model.safetensors',
        } | {'onnx/model.onnx'}
    assert said[0] == 'tiny: o/n from huggingface.co, under the licence that stands there'

    task, real = select.tasks()['image'][-1], select.datasets()['Gifford2022Large']
    assert embed.lacking(task, real, tmp_path) == 'dinov2_giant'
    assert embed.lacking(task, select.datasets()['SimulatedImage'], tmp_path) == ''
    assert embed.lacking(select.tasks()['p3'][-1], real, tmp_path) == ''
    (own := tmp_path / 'hand' / 'encoders' / 'dinov2_giant').mkdir(parents=True)
    assert embed.lacking(task, real, tmp_path / 'hand') == 'dinov2_giant'
    (own / 'config.json').touch()
    assert embed.lacking(task, real, tmp_path / 'hand') == '', 'put there by hand'
    (own / file_list.KEPT).touch()
    assert embed.lacking(task, real, tmp_path / 'hand') == 'dinov2_giant', 'a download that may not be whole'
    (made := tmp_path / real.name / 'embeddings').mkdir(parents=True)
    (made / 'dinov2_giant.npz').touch()
    assert embed.lacking(task, real, tmp_path) == ''


# ---- archives ----


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode='w:gz') as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f'./{name}')
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo(f'link{kind.decode()}.edf')
            link.type, link.linkname = kind, '/etc/passwd'
            archive.addfile(link)
    return file.getvalue()


@pytest.mark.parametrize(('ending', 'made'), [('.zip', zipped), ('.tar.gz', tarred)])
def test_archives_are_unpacked_beside_themselves(tmp_path, monkeypatch, ending, made):
    content = made({**FILES, 'readme.txt': b'not wanted', '__MACOSX/a.edf': b'nor this'})
    host = host_of('zenodo:12', tmp_path / 'other', monkeypatch)
    (tmp_path / 'served').mkdir()
    (tmp_path / 'served' / f'all{ending}').write_bytes(content)
    place, folder = dataclasses.replace(host.place, unpack='*.[et][ds][fv]'), tmp_path / 'd'
    with serving(tmp_path / 'served', api=host_apis.zenodo) as server:
        said = fetch(place, folder, server, monkeypatch)
        assert there(folder) == {**FILES, f'all{ending}': content} and any('unpacks sub/b' in s for s in said)
        (folder / 'a.edf').unlink()
        fetch(place, folder, server, monkeypatch)
        assert there(folder) == {**FILES, f'all{ending}': content} and len(server.asked) == 2
        (folder / 'a.edf').write_bytes(b'my own')
        with pytest.raises(RequestError, match=r'another size \(a\.edf\); jbench replaces no file'):
            fetch(place, folder, server, monkeypatch)


@pytest.mark.parametrize(('ending', 'made'), [('.zip', zipped), ('.tar.gz', tarred)])
@pytest.mark.parametrize('name', ['../x', '/x', 'a/../../x'])
def test_a_member_that_leads_elsewhere_is_refused(tmp_path, ending, made, name):
    path = tmp_path / 'd' / f'all{ending}'
    path.parent.mkdir()
    path.write_bytes(made({'a.edf': b'1', name: b'2'}))
    before = set(tmp_path.rglob('*'))
    with pytest.raises(RequestError, match='no name of a file inside a folder'):
        archives.unpack(path, '*', lambda *facts: None)
    assert set(tmp_path.rglob('*')) == before


@pytest.mark.parametrize(
    'content',
    [b'', zipped(FILES)[:-30], zipped(FILES).replace(zlib.compress(b'in two parts')[2:-4], bytes(14))],
)
def test_a_damaged_archive_is_one_error(tmp_path, content):
    (tmp_path / 'all.zip').write_bytes(content)
    with pytest.raises(RequestError, match=r'all\.zip: cannot be unpacked'):
        archives.unpack(tmp_path / 'all.zip', '*', lambda *facts: None)
    assert not (tmp_path / 'parts.edf').exists()


# ---- MOABB ----


@pytest.mark.slow
@pytest.mark.skipif(find_spec('moabb') is None, reason="moabb is not installed: pip install 'jbench[moabb]'")
@pytest.mark.filterwarnings('ignore')
def test_moabb_fetches_its_sets_and_the_list_is_written(tmp_path, monkeypatch):
    from moabb.datasets import ssvep_nakanishi
    from moabb_files import nakanishi

    (source := tmp_path / 'source').mkdir()
    nakanishi(source)
    path = next(source.rglob('s1.mat'))
    dataset, folder = select.datasets()['Nakanishi2015Comparison'], tmp_path / 'd'
    said: list[str] = []
    monkeypatch.setattr(ssvep_nakanishi.Nakanishi2015, 'nemar_id', None)  # MOABB would ask that mirror first
    with serving(path.parent) as server:
        monkeypatch.setattr(ssvep_nakanishi, 'NAKAHISHI_URL', server.url)
        with pytest.raises(RequestError, match=r'MOABB lacks (\d+) of \d+ subjects .*\(subject 2: HTTPError: 404'):
            download_fetch.fetch(dataset, folder, lambda *facts: None, said.append)
        asked = len(server.asked)
        assert server.starts('s1.mat') == [0] and len(moabb.recordings(dataset, folder)) == 1, 'what came is listed'
        download_fetch.fetch(dataclasses.replace(dataset, n_recordings=1), folder, lambda *facts: None, said.append)
        assert len(server.asked) == asked and '1 recordings in' in said[-1], 'all that is declared is there'


# ---- what is registered ----

FORMS = {
    'https': r'//[a-z0-9./-]+/|//raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/[\w./]*',
    's3': r'//[a-z.-]+/[^*?]+/',
    'openneuro': r'ds\d{6}',
    'zenodo': r'\d+',
    'figshare': r'\d+',
    'osf': r'nodes/[a-z0-9]{5}/files/osfstorage|files/[a-z0-9]{5}',
    'hf': r'datasets/[\w.-]+/[\w.-]+',
    'synapse': r'syn\d+',
    'nemar': r'nm\d{6}/latest',
    'moabb': r'\w+',
}


def test_every_open_set_has_a_sound_address():
    sets = select.datasets().values()
    assert set(FORMS) - {'https'} == {*hosts.LISTS, 'moabb'} and set(hosts.TOKENS) <= set(hosts.HOSTS)
    for dataset in sets:
        scheme, _, rest = dataset.download.url.partition(':') if dataset.download else ('', '', '')
        for place in wanted_files.places_of(dataset) if dataset.download else ():
            kind, _, at = place.url.partition(':')
            assert re.fullmatch(FORMS[kind], at), dataset.name
            assert place.registered or 'githubusercontent' not in at, f'{dataset.name}: GitHub lists no sums'
        assert dataset.access == 'open' or scheme in ('', 'synapse'), f'{dataset.name}: its host must know who asks'
        assert scheme != 'moabb' or rest in dataset.aliases, dataset.name
    assert not [d.name for d in sets if d.access == 'open' and d.download is None and not d.simulated]
