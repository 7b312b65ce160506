"""`az://` through adlfs, against Azurite."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import azure_server
import pytest
import run_whole
import stores

from jbench.spec.errors import RequestError
from jbench.stores import remote
from jbench.stores.address import Address
from jbench.stores.remote import Remote

pytestmark = [
    pytest.mark.slow,  # a server starts
    pytest.mark.skipif(find_spec('adlfs') is None, reason="az:// needs the extra 'cloud'"),
    pytest.mark.skipif(not azure_server.here(), reason='azurite-blob is not on the PATH (npm install azurite)'),
]


@pytest.fixture(scope='module')
def connection():
    with azure_server.serving() as found:
        yield found


@pytest.fixture
def store(connection, monkeypatch):
    monkeypatch.setenv('AZURE_STORAGE_CONNECTION_STRING', connection)
    monkeypatch.setattr(remote, 'WAITS', (0.01,))
    return Remote(Address('az', f'{azure_server.CONTAINER}/run'))


def test_a_second_writer_is_refused(store, tmp_path):
    stores.writes_once(store, tmp_path)
    assert store.facts('a/x.json') is None


@pytest.mark.parametrize('call', [Remote.list, lambda s: s.write('x', b'1'), lambda s: s.write_absent('x', b'1')])
def test_a_container_that_is_not_there_is_one_error(call, store):
    with pytest.raises(RequestError, match="no bucket 'nowhere'"):
        call(Remote(Address('az', 'nowhere/run')))


def test_a_wrong_key_is_one_error_without_it(store, monkeypatch, connection):
    monkeypatch.setenv('AZURE_STORAGE_CONNECTION_STRING', connection.replace(azure_server.KEY, 'd3Jvbmc='))
    with pytest.raises(RequestError, match='refused') as told:
        Remote(Address('az', f'{azure_server.CONTAINER}/run')).list()
    assert 'd3Jvbmc' not in str(told.value) and '\n' not in str(told.value)


def test_the_command_finds_what_another_machine_finished(connection, tmp_path):
    how = json.dumps({'at': None, 'save_every': 60.0, 'url': None})
    work = f'--workdir=az://{azure_server.CONTAINER}/whole'
    flags = ('--task=p3', '--model=dummy', '--seeds=33', '--format=json', work)
    tables = []
    for name in 'ab':
        env = azure_server.machine(connection, tmp_path / name)
        command = [sys.executable, run_whole.__file__, how, *flags]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and azure_server.KEY not in done.stderr, done.stderr
        tables.append(done.stdout)
        assert ('finished before' in done.stderr) == (name == 'b')
    assert tables[0] == tables[1]
