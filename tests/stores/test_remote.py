"""A real S3 server, and what goes wrong between it and us."""

from __future__ import annotations

import logging
import threading

import pytest
import s3_server
from s3_server import Fault

from jbench.spec.errors import RequestError
from jbench.stores import remote
from jbench.stores.address import Address
from jbench.stores.remote import Facts, Remote

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def server():
    with s3_server.serving() as url:
        yield url


@pytest.fixture
def line(server, tmp_path, monkeypatch):
    """A bad line to the server, by which this process reaches it."""
    with s3_server.badly(server) as proxy:
        for name, value in s3_server.machine(proxy.url, tmp_path / 'cache').items():
            if name.startswith(('AWS_', 'JBENCH_')):
                monkeypatch.setenv(name, value)
        monkeypatch.setattr(remote, 'WAITS', (0.01, 0.02))
        yield proxy


@pytest.fixture
def store(line, request):
    """A folder of its own for each test."""
    return Remote(Address('s3', f'{s3_server.BUCKET}/{request.node.name.partition("[")[0]}'))


def test_a_second_writer_is_refused_by_the_server_itself(store, server):
    assert store.write_absent('a/x.json', b'first')
    assert not store.write_absent('a/x.json', b'second')
    assert store.write_absent('a/x.json', b'first'), 'what is there is what was to be written'
    assert store.read('a/x.json') == b'first'
    with pytest.raises(FileExistsError):
        store._fs.pipe_file(store._path('a/x.json'), b'second', mode='create')


def test_of_many_writers_one_wins(store):
    store.write_absent('before', b'')
    start, won = threading.Barrier(8), []

    def write(k: int) -> None:
        start.wait()
        if store.write_absent('x.json', b'%d' % k):
            won.append(k)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read('x.json') == b'%d' % won[0] and len(won) == 1


def test_files_are_listed_read_and_removed(store, tmp_path):
    (tmp_path / 'large').write_bytes(bytes(10**6))
    store.write('a/b/large', tmp_path / 'large')
    store.write('a/small', b'little')
    found = store.list('a')
    assert {n: f.size for n, f in found.items()} == {'a/b/large': 10**6, 'a/small': 6}
    assert store.facts('a/small') == found['a/small'] and store.facts('a/none') is None
    store.fetch('a/b/large', tmp_path / 'came', found['a/b/large'])
    assert found['a/b/large'].same(tmp_path / 'came') and not found['a/small'].same(tmp_path / 'came')
    store.remove(['a/small', 'a/none'])
    assert list(store.list()) == ['a/b/large'] and store.list('none') == {} and store.read('a/small') is None


@pytest.mark.parametrize(('status', 'code'), [(500, 'InternalError'), (503, 'SlowDown'), (429, 'TooManyRequests')])
@pytest.mark.parametrize('method', ['GET', 'PUT'])
def test_faults_that_pass_are_waited_for(status, code, method, store, line):
    store.write_absent('x', b'x')
    fault = Fault(method, n=2, status=status, code=code)
    line.faults.append(fault)
    if method == 'PUT':
        store.write('y', b'y')
    assert store.read('x') == b'x' and (method == 'GET' or store.read('y') == b'y')
    assert fault.n == 0


@pytest.mark.parametrize(('status', 'code'), [(500, 'InternalError'), (503, 'SlowDown')])
def test_a_fault_that_stays_is_one_error(status, code, store, line, monkeypatch):
    line.faults.append(Fault(n=-1, status=status, code=code))
    with pytest.raises(RequestError, match=r'no answer after 3 tries .*run the same command again') as told:
        store.read('x')
    assert str(told.value).startswith(f'{store.url}/x: ') and '\n' not in str(told.value)


@pytest.mark.parametrize('cut', [0, 1, 70_000, 199_999])
def test_a_file_that_is_cut_comes_whole(cut, store, line, tmp_path):
    content = bytes(range(250)) * 800
    store.write('x', content)
    line.faults.append(Fault('GET', '/x', cut=cut))
    store.fetch('x', tmp_path / 'x', store.list()['x'])
    assert (tmp_path / 'x').read_bytes() == content
    assert not line.faults[0].n


def test_a_file_that_is_always_cut_is_absent(store, line, tmp_path):
    store.write('x', bytes(200_000))
    facts = store.list()['x']
    line.faults.append(Fault('GET', '/x', n=-1, cut=10))
    with pytest.raises(RequestError, match='no answer after 3 tries'):
        store.fetch('x', tmp_path / 'at' / 'x', facts)
    assert not list((tmp_path / 'at').iterdir())


def test_a_write_whose_answer_was_lost_is_ours(store, line):
    store.write_absent('before', b'')
    line.faults.append(Fault('PUT', '/x', lost=True))
    assert store.write_absent('x', b'mine')
    assert not line.faults[0].n and store.read('x') == b'mine'


def test_a_wrong_digest_is_an_error(store, line, tmp_path):
    store.write('x', b'right')
    facts, right = store.list()['x'], 'b5f3729e5418905ad2b21ce186b1c01dfd0d80c1ffe0e3a5a4f4b1c1bd2c6d54'
    with pytest.raises(RequestError, match=f'/x: expected SHA-256 {right}, found .*what lies there is damaged: remove'):
        store.fetch('x', tmp_path / 'x', facts, right)
    assert not (tmp_path / 'x').exists()


def test_a_flipped_bit_on_the_way_is_seen_and_fetched_again(store, line, tmp_path):
    import hashlib

    store.write('x', b'right')
    line.faults.append(Fault('GET', '/x', flip=True))
    store.fetch('x', tmp_path / 'x', store.list()['x'], hashlib.sha256(b'right').hexdigest())
    assert (tmp_path / 'x').read_bytes() == b'right' and not line.faults[0].n


def test_a_file_that_is_removed_meanwhile_is_told(store, tmp_path):
    with pytest.raises(RequestError, match='it was removed from the store meanwhile'):
        store.fetch('none', tmp_path / 'x', Facts(1, 1))


def test_a_store_that_lets_two_write_is_refused(store, monkeypatch):
    fs = store._fs
    pipe_file = fs.pipe_file
    monkeypatch.setattr(fs, 'pipe_file', lambda path, content, mode='': pipe_file(path, content))
    with pytest.raises(RequestError, match='lets a file be written twice'):
        store.write_absent('x', b'x')
    assert store.list() == {}


@pytest.mark.parametrize('call', ['list', 'write', 'write_absent'])
def test_a_bucket_that_is_not_there_is_one_error(call, line):
    nowhere = Remote(Address('s3', 'nowhere/run'))
    with pytest.raises(RequestError, match=r"s3://nowhere/run: these credentials see no bucket 'nowhere'"):
        nowhere.list() if call == 'list' else getattr(nowhere, call)('x', b'x')


@pytest.mark.parametrize(
    ('status', 'code'), [(403, 'AccessDenied'), (403, 'InvalidAccessKeyId'), (401, 'Unauthorized')]
)
def test_a_refusal_is_told_at_once(status, code, store, line):
    line.faults.append(Fault(n=-1, status=status, code=code))
    with pytest.raises(RequestError, match=r'refused .*these credentials need the right'):
        store.read('x')
    assert len(line.asked) <= 2


def test_without_credentials_the_variables_are_named(store, line, monkeypatch, tmp_path):
    for name in ('AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'):
        monkeypatch.delenv(name)
    monkeypatch.setenv('HOME', str(tmp_path))
    with pytest.raises(RequestError, match=r'no credentials .*AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'):
        store.list()


def test_no_credential_is_in_an_error_or_a_log(store, line, caplog):
    caplog.set_level(logging.DEBUG)
    for logger in ('s3fs', 'fsspec'):
        logging.getLogger(logger).setLevel(logging.DEBUG)
    line.faults.append(Fault(n=-1, status=400, code=f'Odd {s3_server.SECRET} and {s3_server.KEY}'))
    with pytest.raises(RequestError) as told:
        store.read('x')
    said = str(told.value) + ''.join(caplog.messages)
    assert '$AWS_SECRET_ACCESS_KEY' in str(told.value) or s3_server.SECRET not in str(told.value)
    assert s3_server.SECRET not in said and told.value.__suppress_context__


def test_a_server_that_is_not_there_is_one_error(store, monkeypatch):
    monkeypatch.setenv('AWS_ENDPOINT_URL', 'http://127.0.0.1:9')
    with pytest.raises(RequestError, match=r'no answer after 3 tries .*127\.0\.0\.1:9'):
        Remote(Address('s3', 'bucket/run')).list()
