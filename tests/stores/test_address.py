"""What names a store, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from places import ROOT

from jbench.cli import arguments
from jbench.spec.errors import RequestError
from jbench.stores import address, mirror
from jbench.stores.remote import Remote

WRONG = {
    'ftp://host/folder': "unknown kind of store 'ftp'",
    'S3://bucket/run': "unknown kind of store 'S3'",
    's3:/bucket/run': 'lacks a slash',
    'gs:/': 'lacks a slash',
    's3://': 'names no bucket',
    's3:///run': 'names no bucket',
    's3://bucket/../other': 'no such folder',
    's3://KEY:hidden@bucket/run': 'credentials, which come from the environment alone',
    'az:/box/run?sig=hidden': 'credentials, which come from the environment alone',
    'az://box/run?sig=hidden': 'credentials, which come from the environment alone',
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv('JBENCH_CACHE', str(tmp_path / 'cache'))


@pytest.mark.parametrize('text', WRONG)
@pytest.mark.parametrize('flag', ['--workdir', '--data_dir'])
def test_a_wrong_address_is_one_error(text, flag, capsys):
    with pytest.raises(RequestError, match=WRONG[text]) as told:
        arguments.parse(['--task=p3', f'{flag}={text}'])
    assert flag in str(told.value) and 'hidden' not in str(told.value) and '\n' not in str(told.value)


def test_a_missing_package_is_told_with_the_command(monkeypatch):
    monkeypatch.setattr(address, 'find_spec', lambda name: None)
    with pytest.raises(RequestError, match=r"gs://bucket/run needs gcsfs.*pip install 'jbench\[cloud\]'"):
        arguments.parse(['--task=p3', '--workdir=gs://bucket/run'])


def test_a_store_has_a_copy_of_its_own_on_each_server(tmp_path, monkeypatch):
    first, again, other = (mirror.local(f's3://bucket/{n}', '--workdir') for n in ('run/', 'run', 'run2'))
    assert first == again != other and first.is_relative_to(tmp_path / 'cache')
    monkeypatch.setenv('AWS_ENDPOINT_URL', 'http://127.0.0.1:9000')
    assert mirror.local('s3://bucket/run', '--workdir') != first
    assert mirror.name(first) == 's3://bucket/run' and mirror.name('some/folder') == 'some/folder'
    assert mirror.of(tmp_path) is None and mirror.of(None) is None and mirror.of(tmp_path / 'absent') is None


def test_accounts_of_connection_strings_have_copies_of_their_own(monkeypatch):
    def copy(text: str):
        monkeypatch.setenv('AZURE_STORAGE_CONNECTION_STRING', text)
        return address.Address('az', 'box/run').copy

    monkeypatch.delenv('AZURE_STORAGE_CONNECTION_STRING', raising=False)
    monkeypatch.setenv('AZURE_STORAGE_ACCOUNT_NAME', '')
    none = address.Address('az', 'box/run').copy
    said = 'DefaultEndpointsProtocol=https;AccountName={};AccountKey={}==;EndpointSuffix=core.windows.net'
    one, again, two = (copy(said.format(*of)) for of in (('one', 'a'), ('one', 'b'), ('two', 'a')))
    assert one == again, 'a key that was changed names the same account'
    assert copy('BlobEndpoint=http://127.0.0.1:9/one/;SharedAccessSignature=sv=a') == copy(
        'SharedAccessSignature=sv=b;BlobEndpoint=http://127.0.0.1:9/one'
    )
    assert (
        len({none, one, two, copy('BlobEndpoint=http://127.0.0.1:9/one'), copy('BlobEndpoint=http://127.0.0.1:9/two')})
        == 5
    )


@pytest.mark.parametrize('call', [Remote.list, lambda s: s.write('x', b'1'), lambda s: s.write_absent('x', b'1')])
def test_what_azure_says_of_a_missing_container_is_the_error_of_all_stores(call):
    class Missing(Exception):
        status_code = 404

    def refused(*args, **options):
        raise Missing('<?xml version="1.0"?><Error><Code>ContainerNotFound</Code></Error>')

    store = Remote(address.Address('az', 'nowhere/run'))
    store._made = SimpleNamespace(find=refused, pipe_file=refused, invalidate_cache=lambda: None)
    with pytest.raises(RequestError, match="these credentials see no bucket 'nowhere'"):
        call(store)


def test_a_folder_stays_one():
    args = arguments.parse(['--task=p3', '--workdir=some/folder'])
    assert str(args.workdir) == 'some/folder'
    assert not any(map(address.is_address, ('s3', 's3/run', './s3:/run', 'C:/run', '/mnt/gs:/run')))


def test_files_are_not_fetched_into_a_store():
    with pytest.raises(RequestError, match='fetched into a folder'):
        arguments.parse(['--task=p3', '--download', '--data_dir=s3://bucket/data'])


def test_every_fault_that_the_page_lists_has_its_test():
    named = re.findall(r'`(test_\w+\.py)::(\w+)`', (ROOT / 'docs' / 'stores.md').read_text())
    assert len(named) > 10
    for name, function in named:
        assert f'\ndef {function}(' in (Path(__file__).parent / name).read_text()


@pytest.mark.parametrize('name', ['../../x', '/etc/x', 'results/../../x', '.store', 'a/.store', 'a\\b'])
def test_a_name_of_a_store_leads_nowhere_else(name):
    assert not mirror.inside(name) and mirror.inside('results/a/seed33.json')
