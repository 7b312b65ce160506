"""Downloads from a server on this machine with the faults of servers and networks, and the whole command."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import itertools
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path
from urllib.parse import unquote

import pytest
from places import HELPERS, ROOT
from serve import SUMS, Fault, main, redirected, serving

from jbench.data.discover import find_recordings
from jbench.data.download import fetch as download_fetch
from jbench.data.download import file_list, http, wanted_files
from jbench.plan import select
from jbench.spec.dataset import Download
from jbench.spec.errors import RequestError

SEED = 7
NAME, OTHER = 'a.edf', 'sub/b [1].edf'
WHOLE = random.Random(SEED).randbytes(1_000_000)
ZYMA = select.datasets()['Zyma2019Electroencephalograms']
SMALL = dataclasses.replace(ZYMA, name='Small', source='small_source', host='example.org/small')


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(http, 'WAITS', (0.0, 0.0, 0.0))
    monkeypatch.setattr(http, 'TIMEOUT', (2.0, 0.3))


@pytest.fixture
def served(tmp_path) -> Path:
    """Two files to serve."""
    (tmp_path / 'served' / 'sub').mkdir(parents=True)
    (tmp_path / 'served' / NAME).write_bytes(WHOLE)
    (tmp_path / 'served' / OTHER).write_bytes(b'second')
    return tmp_path / 'served'


@pytest.fixture
def registered(tmp_path, monkeypatch) -> str:
    """The list of the big file with its size, beside a source module."""
    monkeypatch.syspath_prepend(str(tmp_path / 'code'))
    monkeypatch.delitem(sys.modules, 'small_source', raising=False)
    (tmp_path / 'code').mkdir()
    (tmp_path / 'code' / 'small_source.py').write_text('def recordings(dataset, root): ...\ndef read(ref): ...\n')
    line = f'{hashlib.sha256(WHOLE).hexdigest()} {len(WHOLE)} {NAME}\n'
    (tmp_path / 'code' / 'small.sha256').write_text(line)
    return 'small.sha256'


def fetch(url: str, folder: Path, registered: str | None = None) -> list[str]:
    """Fetch the small dataset; what is said meanwhile."""
    said: list[str] = []
    dataset = dataclasses.replace(SMALL, download=Download(url=url, registered=registered, files='*.edf'))
    download_fetch.fetch(dataset, folder, lambda *facts: said.append(' '.join(map(str, facts))), said.append)
    return said


def names(folder: Path) -> set[str]:
    """Every file under a folder but the lock and the list."""
    found = {str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file()}
    return found - {file_list.LOCK, file_list.KEPT}


def refusal(url: str, folder: Path, registered: str | None = None) -> str:
    """The error of a download that must fail, and leaves nothing under a final name."""
    with pytest.raises(RequestError) as error:
        fetch(url, folder, registered)
    assert NAME not in names(folder)
    return str(error.value)


# ---- what goes well ----


@pytest.mark.parametrize('how', ['registered', 'listed by the host'])
def test_every_file_comes_once(served, registered, tmp_path, how):
    mine = registered if how == 'registered' else None
    with serving(served) as server:
        said = fetch(server.url, tmp_path / 'd', mine)
        assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE
        assert names(tmp_path / 'd') == ({NAME} if mine else {NAME, OTHER})
        assert server.starts(NAME) == [0]
        before = len(server.asked)
        (tmp_path / 'd' / '.download.lock').unlink()
        again = fetch(server.url, tmp_path / 'd', mine)
        assert len(server.asked) == before, 'a second run asks nothing'
    assert not (tmp_path / 'd' / '.download.lock').exists(), 'nor does it write'
    assert 'licence ODC-By-1.0; cite Zyma' in said[0]
    assert any('1.0 of 1.0 MB' in s for s in said)
    assert f'{len(names(tmp_path / "d"))} fetched' in said[-1]
    assert f'0 fetched, {len(names(tmp_path / "d"))} were there' in again[-1]


def test_what_is_missing_is_fetched_and_nothing_else(served, tmp_path):
    with serving(served) as server:
        fetch(server.url, tmp_path / 'd')
        (tmp_path / 'd' / OTHER).unlink()
        fetch(server.url, tmp_path / 'd')
        assert len(server.starts(NAME)) == 1 and (tmp_path / 'd' / OTHER).read_bytes() == b'second'


def test_a_file_of_another_content_is_never_replaced(served, tmp_path):
    (tmp_path / 'd').mkdir()
    (tmp_path / 'd' / NAME).write_bytes(b'my own')
    with serving(served) as server, pytest.raises(RequestError, match=r'1 of 2 files differ.*a\.edf.*move them away'):
        fetch(server.url, tmp_path / 'd')
    assert (tmp_path / 'd' / NAME).read_bytes() == b'my own' and server.starts(NAME) == []


def test_of_two_at_once_one_fetches(served, tmp_path):
    with serving(served) as server:
        both = [threading.Thread(target=fetch, args=(server.url, tmp_path / 'd')) for _ in range(2)]
        [t.start() for t in both]
        [t.join() for t in both]
        assert server.starts(NAME) == [0]
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


def test_a_redirect_is_followed(served, registered, tmp_path):
    (served / NAME).rename(served / 'elsewhere')
    with serving(served, {NAME: [Fault(status=302, headers=(('Location', '/elsewhere?key=1'),))]}) as server:
        fetch(server.url, tmp_path / 'd', registered)
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


# ---- connections that fail ----


@pytest.mark.parametrize('how', ['drop', 'hang', 'drop, length unsaid'])
def test_a_broken_or_silent_connection_is_resumed(served, registered, tmp_path, how):
    at = sorted(random.Random(SEED).sample(range(100_000, 900_000), 5))
    unsaid = (('Content-Length', ''),) if 'unsaid' in how else ()
    faults = [Fault(**{how[:4]: after - before}, headers=unsaid) for before, after in itertools.pairwise([0, *at])]
    with serving(served, {NAME: faults}) as server:
        fetch(server.url, tmp_path / 'd', registered)
        starts = server.starts(NAME)
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE
    assert starts[0] == 0 and len(starts) == 6 and starts == sorted(starts)
    assert all(k - 5 * http.CHUNK < start <= k for start, k in zip(starts[1:], at, strict=True))


def test_a_server_without_ranges_starts_again(served, registered, tmp_path):
    with serving(served, {NAME: [Fault(drop=500_000), Fault(ranges=False)]}) as server:
        fetch(server.url, tmp_path / 'd', registered)
        assert len(server.starts(NAME)) == 2 and server.starts(NAME)[1] > 0
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


@pytest.mark.parametrize('old', [WHOLE[::-1], WHOLE[::-1] + b'more'], ids=['same size', 'another size'])
def test_a_file_that_changes_between_two_parts_is_fetched_anew(served, tmp_path, old):
    with serving(served, {NAME: [Fault(body=old, drop=500_000)]}) as server:
        fetch(server.url, tmp_path / 'd')
        assert server.starts(NAME)[-1] == 0
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE
    assert names(tmp_path / 'd') == {NAME, OTHER}


def test_a_part_that_was_not_asked_for_is_not_added(served, registered, tmp_path):
    odd = Fault(headers=(('Content-Range', f'bytes 3-{len(WHOLE) - 1}/{len(WHOLE)}'),))
    with serving(served, {NAME: [Fault(drop=500_000), odd]}) as server:
        fetch(server.url, tmp_path / 'd', registered)
        assert server.starts(NAME)[2] == 0
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


@pytest.mark.parametrize('status', [401, 403, 404, 410])
def test_a_refusal_is_one_error(served, registered, tmp_path, status):
    with serving(served, {NAME: [Fault(status=status)] * 9}) as server:
        assert f'{server.url}{NAME}: {status} ' in refusal(server.url, tmp_path / 'd', registered)
        assert server.starts(NAME) == [0]


@pytest.mark.parametrize('status', [429, 500, 503])
def test_a_fault_that_may_pass_is_tried_a_few_times(served, registered, tmp_path, status):
    later = Fault(status=status, headers=(('Retry-After', '0'),))
    with serving(served, {NAME: [later] * 3}) as server:
        said = fetch(server.url, tmp_path / 'one', registered)
        assert server.starts(NAME) == [0] * 4
        assert sum(f'{NAME}: {status} ' in s and 'the next attempt begins in 0 s' in s for s in said) == 3
    with serving(served, {NAME: [later] * 99}) as server:
        assert f': {status} ' in refusal(server.url, tmp_path / 'two', registered)
        assert server.starts(NAME) == [0] * 4


def test_a_host_is_not_asked_before_it_wants_to_be(served, registered, tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(http.time, 'sleep', waits.append)
    busy = Fault(status=429, headers=(('Retry-After', '17'),))
    with serving(served, {NAME: [busy]}) as server:
        fetch(server.url, tmp_path / 'one', registered)
    assert waits == [17.0]
    busy = Fault(status=429, headers=(('Retry-After', 'Wed, 21 Oct 2315 07:28:00 GMT'),))
    with serving(served, {NAME: [busy]}) as server:
        assert 'the host asks to wait' in refusal(server.url, tmp_path / 'two', registered)
    assert waits == [17.0] and http._wait('soon') == 0


def test_no_server_at_all_is_one_error(registered, tmp_path):
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        url = f'http://127.0.0.1:{unused.getsockname()[1]}/'
    message = refusal(url, tmp_path / 'd', registered)
    assert message.startswith(f'{url}{NAME}: ') and 'run the same command again later' in message


# ---- answers that are not the file ----


@pytest.mark.parametrize(
    ('fault', 'words'),
    [
        (Fault(body=b'\n <!DOCTYPE html>\n<p>log in'), "web page instead of the file: '<!DOCTYPE html>'"),
        (Fault(body=b'please log in', headers=(('Content-Type', 'text/html; charset=utf-8'),)), "'please log in'"),
        (Fault(body=b''), '0 bytes'),
    ],
)
@pytest.mark.parametrize('listed', [True, False])
def test_what_is_no_file_is_refused(served, registered, tmp_path, fault, words, listed):
    with serving(served, {NAME: [fault] * 2}) as server:
        # with a registered size, the number of bytes may speak first
        message = refusal(server.url, tmp_path / 'd', registered if listed else None)
        assert words in message or (listed and f'at the host, {len(WHOLE)} in the list' in message)
        assert server.starts(NAME) == [0] and not {f for f in names(tmp_path / 'd') if f.startswith(NAME)}


@pytest.mark.parametrize('more', [-10, 10])
def test_another_size_than_the_registered_one_is_refused(served, registered, tmp_path, more):
    body = (WHOLE + bytes(10))[: len(WHOLE) + more]
    with serving(served, {NAME: [Fault(body=body)]}) as server:
        assert f'{len(body)} bytes at the host' in refusal(server.url, tmp_path / 'd', registered)
    unsaid = Fault(body=body, headers=(('Content-Length', ''),))
    with serving(served, {NAME: [unsaid] * 9}) as server:
        message = refusal(server.url, tmp_path / 'e', registered)
        assert ('sends more than the' if more > 0 else 'SHA-256') in message


@pytest.mark.parametrize('more', [-10, 10])
def test_a_server_that_lies_about_the_length_changes_nothing(served, tmp_path, more):
    lie = Fault(headers=(('Content-Length', str(len(WHOLE) + more)),))
    with serving(served, {NAME: [lie]}) as server:
        fetch(server.url, tmp_path / 'd')
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE
    with serving(served, {NAME: [Fault(drop=0, headers=lie.headers)] * 99}) as server:
        refusal(server.url, tmp_path / 'e')


def test_a_wrong_sum_is_kept_aside_and_tried_once_more(served, registered, tmp_path):
    flipped = bytearray(WHOLE)
    flipped[123_456] ^= 1
    with serving(served, {NAME: [Fault(body=bytes(flipped))]}) as server:
        fetch(server.url, tmp_path / 'one', registered)
        assert names(tmp_path / 'one') == {NAME}
    with serving(served, {NAME: [Fault(body=bytes(flipped))] * 9}) as server:
        message = refusal(server.url, tmp_path / 'two', registered)
        assert server.starts(NAME) == [0, 0]
    assert hashlib.sha256(flipped).hexdigest() in message and hashlib.sha256(WHOLE).hexdigest() in message
    assert (tmp_path / 'two' / f'{NAME}.bad').read_bytes() == flipped and names(tmp_path / 'two') == {f'{NAME}.bad'}


@pytest.mark.parametrize('size', [len(WHOLE), len(WHOLE) + 5])
@pytest.mark.parametrize('listed', [True, False])
def test_a_whole_part_is_not_asked_for_again(served, registered, tmp_path, listed, size):
    """Killed between the last byte and the name; and a part that became too long."""
    (tmp_path / 'd').mkdir()
    (tmp_path / 'd' / f'{NAME}.part').write_bytes((WHOLE + b'12345')[:size])
    with serving(served) as server:
        fetch(server.url, tmp_path / 'd', registered if listed else None)
        assert server.starts(NAME) == ([] if listed else [size]) + ([0] if size > len(WHOLE) else [])
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


# ---- trust ----


@pytest.fixture(scope='module')
def certificate(tmp_path_factory) -> Path:
    """A certificate for 127.0.0.1 that nobody signed but itself, with its key."""
    path = tmp_path_factory.mktemp('tls') / 'both.pem'
    if not shutil.which('openssl'):
        pytest.skip('no openssl here to make a certificate')
    make = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1'
    own = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', str(path), '-out', str(path.with_name('cert.pem'))]
    subprocess.run(['openssl', *make.split(), *own], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_name('cert.pem').read_text())
    return path


def test_an_untrusted_certificate_is_an_error(served, registered, tmp_path, certificate, monkeypatch):
    with serving(served, certificate=certificate) as server:
        assert 'no trusted connection' in refusal(server.url, tmp_path / 'd', registered)
        assert server.asked == []
        monkeypatch.setenv('REQUESTS_CA_BUNDLE', str(certificate.with_name('cert.pem')))  # now somebody vouches for it
        fetch(server.url, tmp_path / 'd', registered)
        with serving(served) as plain:
            server.script[NAME] = [Fault(status=301, headers=(('Location', f'{plain.url}{NAME}?key=hunter2'),))]
            message = refusal(server.url, tmp_path / 'e', registered)
            assert 'refused to follow it to http://' in message and 'hunter2' not in message
            assert plain.asked == []


@pytest.mark.parametrize('target', ['file:///etc/passwd', 'ftp://127.0.0.1/a.edf', 'gopher://x'])
def test_a_redirect_to_another_scheme_is_refused(served, registered, tmp_path, target):
    with serving(served, {NAME: [Fault(status=302, headers=(('Location', target),))]}) as server:
        assert f'refused to follow it to {target}' in refusal(server.url, tmp_path / 'd', registered)


def test_redirects_in_a_circle_end(served, registered, tmp_path):
    with serving(served, {NAME: [Fault(status=302, headers=(('Location', f'/{NAME}'),))] * 99}) as server:
        assert 'more than 5 redirects' in refusal(server.url, tmp_path / 'd', registered)


def test_no_message_holds_a_secret(served, registered, tmp_path):
    with serving(served, {NAME: [Fault(status=403), *[Fault(status=500)] * 9]}) as server:
        secret = server.url.replace('//', '//me:hunter2@') + '?token=hunter2&file='
        for folder in ('d', 'e'):
            message = refusal(secret, tmp_path / folder, registered)
            assert '127.0.0.1' in message and 'hunter2' not in message
    assert 'hunter2' not in refusal(secret, tmp_path / 'f', registered), 'no server'
    for text in (f'GET {secret}x failed', f"Max retries exceeded with url: {secret}x (Caused by '{secret}')"):
        assert 'hunter2' not in http.public(text) and 'me' not in http.public(secret)


SUM = hashlib.sha256(b'').hexdigest()


@pytest.mark.parametrize(
    'name',
    ['/etc/passwd', '../x', 'a/../../x', 'a//x', './x', 'a/', 'C:x', 'C:\\x', 'a\\..\\x', 'a\x00b', 'a\x1b[2Jb', '..'],
)
def test_names_that_lead_elsewhere_are_refused(served, tmp_path, name):
    with pytest.raises(RequestError, match='no name of a file inside a folder'):
        file_list.parse_list(f'{SUM}  {name}\n', 'http://x/', 'list')
    (served / SUMS).write_text(f'{SUM}  {name}\n{SUM}  {NAME}\n')
    before = {p for p in tmp_path.rglob('*') if p.is_file()}
    with serving(served) as server:
        refusal(server.url, tmp_path / 'd')
    assert {p for p in tmp_path.rglob('*') if p.is_file()} - before == {tmp_path / 'd' / '.download.lock'}


@pytest.mark.parametrize('text', ['', '<html>', f'{SUM[:63]} a', f'{SUM.upper()} a', f'{SUM}a', f'{SUM} a\n{SUM} a'])
def test_what_is_no_list_is_refused_and_not_kept(served, tmp_path, text):
    with pytest.raises(RequestError, match='list: '):
        file_list.parse_list(text, 'http://x/', 'list')
    (served / SUMS).write_text(text)
    with serving(served) as server:
        refusal(server.url, tmp_path / 'd')
        assert names(tmp_path / 'd') == set() and not (tmp_path / 'd' / file_list.KEPT).exists()
        (served / SUMS).unlink()
        fetch(server.url, tmp_path / 'd')


def test_the_forms_of_a_list():
    text = f'{SUM} a b.edf\n{SUM}  c\n{SUM} *d/e\n{SUM} 12 f\n'
    assert [(f.name, f.size) for f in file_list.parse_list(text, 'http://x/', '')] == [
        ('a b.edf', None),
        ('c', None),
        ('d/e', None),
        ('f', 12),
    ]


# ---- the disk ----


def test_a_disk_that_is_too_small_is_found_before_the_first_byte(served, registered, tmp_path, monkeypatch):
    usage = namedtuple('usage', 'total used free')
    monkeypatch.setattr(http.shutil, 'disk_usage', lambda path: usage(0, 0, 999_999))
    with serving(served) as server:
        message = refusal(server.url, tmp_path / 'd', registered)
        assert server.starts(NAME) == []
        assert f'{tmp_path / "d"}: 1000000 bytes needed, 999999 free' in message
        assert '1000000 bytes needed' in refusal(server.url, tmp_path / 'e'), 'a size that the host tells'
        (tmp_path / 'd' / f'{NAME}.part').write_bytes(WHOLE[:1])
        fetch(server.url, tmp_path / 'd', registered)


def test_a_disk_that_fills_is_one_error_and_the_part_stays(served, registered, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving(served) as server:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
            message = refusal(server.url, tmp_path / 'd', registered)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert str(tmp_path / 'd' / NAME) in message and '1000000 bytes needed' in message
        assert names(tmp_path / 'd') == {f'{NAME}.part'}
        fetch(server.url, tmp_path / 'd', registered)
        assert server.starts(NAME)[1] > 0
    assert (tmp_path / 'd' / NAME).read_bytes() == WHOLE


def test_a_file_has_its_name_only_when_it_is_flushed(served, registered, tmp_path, monkeypatch):
    def fail(descriptor: int) -> None:
        raise OSError(5, 'Input/output error')

    monkeypatch.setattr(os, 'fsync', fail)
    with serving(served) as server:
        assert 'Input/output error' in refusal(server.url, tmp_path / 'd', registered)


def test_a_folder_without_the_right_to_write_is_one_error(served, tmp_path):
    (tmp_path / 'file').touch()
    with serving(served) as server, pytest.raises(RequestError, match='cannot write'):
        fetch(server.url, tmp_path / 'file' / 'd')


# ---- several datasets, and terms ----


def test_what_cannot_be_fetched_is_said_and_the_others_come(served, tmp_path, capsys):
    open_one = dataclasses.replace(SMALL, download=Download(url='http://127.0.0.1:1/'))
    with serving(served) as server:
        good = dataclasses.replace(open_one, download=Download(url=server.url))
        wanted = [
            dataclasses.replace(good, name='Gated', access='after an agreement'),
            dataclasses.replace(good, name='ByHand', download=None),
            dataclasses.replace(open_one, name='Broken'),
            dataclasses.replace(good, name='Good'),
            select.datasets()['SimulatedP3'],
        ]
        said: list[str] = []
        outcome = download_fetch.fetch_all(wanted, tmp_path, lambda *facts: None, said.append)
    assert outcome == (['Good', 'SimulatedP3'], ['Gated', 'ByHand'], ['Broken']) and outcome.status == 1
    said = [s for s in said if 'next attempt' not in s]
    assert 'accept the terms of the host there' in said[0] and 'accept' not in said[1]
    assert 'put into DIR/ByHand/: Subject<NN>_1.edf' in said[1]
    assert 'jbench: http://127.0.0.1:1/SHA256SUMS.txt: ' in said[3] and 'by hand: Broken: from example.org' in said[3]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name in {d.name for d in wanted}) == ['Broken', 'Good']


@pytest.mark.parametrize(
    ('place', 'said'),
    [
        (Download(url='gs://bucket/'), 'expected the address of a folder'),
        (Download(url='https://example.org/eyes'), 'expected the address of a folder'),
        (Download(url='moabb:Eyes'), 'expected the address of a folder'),
        (Download(url='https://example.org/eyes/', registered='absent.sha256'), 'no such list of sums'),
    ],
)
def test_an_address_of_ones_own_that_leads_nowhere_is_one_error(tmp_path, place, said):
    dataset = dataclasses.replace(SMALL, source='jbench.data.sources.folder', download=place)
    with pytest.raises(RequestError, match=said):
        download_fetch.fetch(dataset, tmp_path / 'Small', lambda *_: None, lambda _: None)
    assert not (tmp_path / 'Small').exists()


def test_exit_statuses():
    assert [download_fetch.Outcome(*o).status for o in (([1], [], []), ([1], [1], []), ([], [], [1]))] == [0, 1, 2]


def test_a_folder_must_be_named():
    with pytest.raises(RequestError, match='name the folder for the files by --data_dir=DIR or JBENCH_DATA'):
        download_fetch.fetch_all([ZYMA], None, lambda *_: None, lambda _: None)


def test_files_of_two_places_come_into_one_folder(served, registered, tmp_path):
    """The second by Git's sum, of which no size is known; a wrong one is refused."""
    blob = b'blob %d\0second' % len(b'second')
    git, code = hashlib.sha1(blob).hexdigest(), tmp_path / 'code'
    (code / 'other.sha256').write_text(f'{git}  {OTHER}\n')
    (code / 'wrong.sha256').write_text(f'{git[::-1]}  {OTHER}\n')
    with serving(served) as server:
        first = Download(url=server.url, registered=registered)
        for name, said in (('wrong', 'SHA-1 of Git'), ('other', '')):
            place = dataclasses.replace(first, also=(Download(url=server.url, registered=f'{name}.sha256'),))
            dataset = dataclasses.replace(SMALL, download=place)
            with pytest.raises(RequestError, match=said) if said else contextlib.nullcontext():
                download_fetch.fetch(dataset, tmp_path / 'd', lambda *_: None, lambda _: None)
        assert names(tmp_path / 'd') == {NAME, OTHER} and server.starts(NAME) == [0]
        listless = dataclasses.replace(SMALL, download=dataclasses.replace(first, also=(Download(url=server.url),)))
        with pytest.raises(RequestError, match='a further place, needs `registered`'):
            download_fetch.fetch(listless, tmp_path / 'd', lambda *_: None, lambda _: None)


# ---- what is registered ----


REGISTERED = [d for d in select.datasets().values() if d.download and d.download.registered]


@pytest.mark.parametrize('dataset', REGISTERED, ids=lambda d: d.name)
def test_registered_lists_are_sound(dataset, tmp_path):
    assert download_fetch.can_fetch(dataset)
    files = []
    for place in wanted_files.places_of(dataset):
        found = wanted_files.kept(place, wanted_files.list_of(dataset, place, tmp_path))
        assert all((f.size or f.kind == 'git') and unquote(f.url) == place.url + f.name for f in found)
        files += found
    assert len({f.name for f in files}) == len(files)
    for f in files:
        path = tmp_path / dataset.name / f.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert len(find_recordings(dataset, tmp_path)) == dataset.n_recordings


@pytest.mark.slow
def test_only_downloads_and_a_dashboard_know_a_network():
    known = {'requests', 'urllib.request', 'urllib3', 'http', 'http.client', 'ftplib', 'pooch', 'aiohttp'}
    for path in (ROOT / 'jbench').rglob('*.py'):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imported = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
        imported |= {str(n.module) for n in nodes if isinstance(n, ast.ImportFrom)}
        downloads = path.name in ('http.py', 'fetch.py', 'hosts.py', 'wanted_files.py')
        dashboard = path.relative_to(ROOT).as_posix() == 'jbench/grid/cluster.py'  # asks that of a scheduler of Dask
        assert not imported & known or downloads or dashboard, path


# ---- the whole command ----


@pytest.fixture
def slice_(data_dir, tmp_path) -> Path:
    """Real recordings of three subjects that the task takes, to serve."""
    folder = tmp_path / 'slice'
    folder.mkdir()
    for path in sorted((data_dir / ZYMA.name).glob('Subject0[1-3]_[12].edf')):
        shutil.copy(path, folder)
    return folder


def start(url: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    serve = str(HELPERS / 'serve.py')
    argv = [sys.executable, serve, ZYMA.name, url, '--task=mental_arithmetic', f'--data_dir={folder}', *more]
    env = {k: v for k, v in os.environ.items() if not k.startswith('JBENCH')}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.mark.slow
def test_all_stages_from_nothing_to_a_table(slice_, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, 'environ', os.environ.copy())
    argv = ['--task=mental_arithmetic', '--model=dummy', f'--data_dir={tmp_path / "new" / "data"}', '--seeds=33']
    argv += [f'--workdir={tmp_path / "work"}', '--format=json']
    with serving(slice_) as server:
        assert main([ZYMA.name, server.url, *argv, '--stage=download,prepare,train,report']) == 0
    out, err = capsys.readouterr()
    assert '6 files with the listed sums' in err and '"dummy"' in out
    assert names(tmp_path / 'new' / 'data' / ZYMA.name) == {p.name for p in slice_.iterdir()}

    def refuse(self: socket.socket, address: object) -> None:
        raise AssertionError(f'a connection to {address}')

    monkeypatch.setattr(socket.socket, 'connect', refuse)
    assert main([ZYMA.name, server.url, *argv, '--if_exists=overwrite']) == 0
    assert main([ZYMA.name, server.url, *argv, '--stage=download']) == 0, 'all is there: nothing is asked for'
    capsys.readouterr()
    assert main([ZYMA.name, server.url, *argv, '--download']) == 0
    assert '"dummy"' in capsys.readouterr().out, 'the stages run too'


def test_without_a_folder_recordings_lie_in_the_work_folder(slice_, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv('JBENCH_DATA', raising=False)
    argv = ['--task=mental_arithmetic', f'--workdir={tmp_path / "work"}']
    with serving(slice_) as server:
        assert main([ZYMA.name, server.url, *argv, '--stage=download']) == 0
    assert names(tmp_path / 'work' / 'data' / ZYMA.name) == {p.name for p in slice_.iterdir()}
    capsys.readouterr()
    assert main([ZYMA.name, server.url, *argv, '--model=dummy', '--dry_run']) == 0
    assert f'mental_arithmetic@2/{ZYMA.name} dummy' in capsys.readouterr().out, 'they are found there'


def test_a_dry_run_of_a_download_says_where_files_come_from_and_makes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv('JBENCH_DATA', raising=False)
    argv = ['--task=open_sets', f'--workdir={tmp_path / "work"}', '--download', '--dry_run']
    assert main([ZYMA.name, 'http://127.0.0.1:1/', *argv]) == 0
    out = capsys.readouterr().out
    assert out.count('; fetched by --download') == 9 and not (tmp_path / 'work').exists()


def test_stages_do_not_run_on_half_a_download(slice_, tmp_path, capsys):
    argv = ['--task=mental_arithmetic', '--model=dummy', f'--data_dir={tmp_path}', f'--workdir={tmp_path / "work"}']
    with serving(slice_, {'Subject02_1.edf': [Fault(status=404)]}) as server:
        assert main([ZYMA.name, server.url, *argv, '--stage=download,prepare']) == 2
    assert f'not run, since {ZYMA.name} did not come: mental_arithmetic' in capsys.readouterr().err
    assert names(tmp_path / ZYMA.name) == {'Subject01_1.edf', 'Subject01_2.edf'} and not (tmp_path / 'work').exists()


@pytest.mark.slow
def test_what_came_whole_runs_and_the_rest_does_not(slice_, tmp_path, capsys):
    """A task whose files did not come is neither run on half of them nor on generated recordings."""
    argv = ['--task=p3/SimulatedP3,mental_arithmetic', '--model=dummy', f'--data_dir={tmp_path}', '--seeds=33']
    with serving(slice_, {'Subject01_1.edf': [Fault(status=404)]}) as server:
        assert main([ZYMA.name, server.url, *argv, f'--workdir={tmp_path / "work"}', '--download', '--debug']) == 1
    out, err = capsys.readouterr()
    assert 'did not come: mental_arithmetic' in err and 'SimulatedMentalArithmetic' not in out + err
    assert [p.name for p in (tmp_path / 'work' / 'results').iterdir()] == ['p3@2']


@pytest.mark.slow
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_stopped_at_any_moment_it_goes_on_from_there(slice_, tmp_path, number):
    rng = random.Random(SEED + number)
    files = sorted(slice_.iterdir())
    folder = tmp_path / 'data' / ZYMA.name
    for _ in range(3):
        path = rng.choice([p for p in files if not (folder / p.name).exists()])
        part = folder / f'{path.name}.part'
        left = path.stat().st_size - http.size_of(part)  # what the next answer brings
        with serving(slice_, {path.name: [Fault(hang=rng.randrange(left // 2, left))]}) as server:
            process = start(server.url, folder.parent, '--stage=download')
            assert server.hanging.wait(60)
            began = time.monotonic()
            while not (part.exists() and part.stat().st_size) and time.monotonic() < began + 30:
                time.sleep(0.01)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        assert process.returncode == (-9 if number == signal.SIGKILL else 75), err
        assert 'Traceback' not in err and ('goes on from there' in err) == (number != signal.SIGKILL)
        whole = {p.name for p in files if (folder / p.name).exists()}
        assert all((folder / n).read_bytes() == (slice_ / n).read_bytes() for n in whole)
        parts = {p.name[: -len('.part')]: p.stat().st_size for p in folder.glob('*.part')}
        assert names(folder) == whole | {f'{p}.part' for p in parts} and parts
    with serving(slice_) as server:
        process = start(server.url, folder.parent, '--stage=download')
        assert process.wait(60) == 0, process.stderr.read()
        asked = {name: start for name, start in server.asked if name != SUMS}  # the list of another address
        assert asked == {p.name: parts.get(p.name, 0) for p in files if p.name not in whole}
        process.communicate()
    assert {p.name: p.read_bytes() for p in files} == {n: (folder / n).read_bytes() for n in names(folder)}


def test_a_redirected_dataset_is_the_registered_one_elsewhere():
    assert redirected('eegmat', 'http://x/') == dataclasses.replace(ZYMA, download=Download(url='http://x/'))
