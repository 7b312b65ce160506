"""Azurite, Microsoft's emulator of Azure's store, as a process of its own (npm install azurite; on the PATH)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

CONTAINER = 'box'
PROGRAM = 'azurite-blob'
ACCOUNT = 'devstoreaccount1'
KEY = (  # public: that of every emulator, from its manual
    'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
)


def here() -> bool:
    """Whether it is installed."""
    return shutil.which(PROGRAM) is not None


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """A connection string of a server with the empty container CONTAINER."""
    flags = ('--inMemoryPersistence', '--skipApiVersionCheck', '--blobPort=0', '--silent', '--disableTelemetry')
    process = subprocess.Popen([PROGRAM, *flags], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = next(found[0] for line in process.stdout if (found := re.search(r'http://[\d.]+:[1-9]\d*', line)))
        connection = (
            f'DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url}/{ACCOUNT}'
        )
        from azure.storage.blob import BlobServiceClient

        with BlobServiceClient.from_connection_string(connection) as client:
            client.create_container(CONTAINER)
        yield connection
    finally:
        process.terminate()
        process.communicate()


def machine(connection: str, cache: Path) -> dict[str, str]:
    """The environment of a machine that knows the server and has a cache of its own."""
    others = ('JBENCH', 'JAX_', 'AZURE_', 'PYTHONSAFEPATH')
    env = {k: v for k, v in os.environ.items() if not k.startswith(others)}
    return env | {
        'AZURE_STORAGE_CONNECTION_STRING': connection,
        'JBENCH_CACHE': str(cache),
        'NPROC': '2',
        'PYTHONPATH': str(Path(__file__).parents[2]),
    }
