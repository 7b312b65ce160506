"""Without the extra `alignment`: names can be listed, and what needs a package says so in one line."""

from __future__ import annotations

import ast
import sys

import pytest
from each import each
from places import ROOT

from jbench.alignment import assembly, data, store
from jbench.spec.errors import MissingExtraError

OPTIONAL = {'xarray', 'pandas', 'PIL', 'h5netcdf', 'h5py', 'pyarrow', 'fsspec'}


@each('path', sorted((ROOT / 'jbench' / 'alignment').rglob('*.py')), ids=lambda p: p.name)
def test_modules_can_be_imported_without_the_extra(path):
    guards = (ast.If, ast.FunctionDef)
    nodes = [n for n in ast.parse(path.read_text()).body if not isinstance(n, guards)]
    names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module) for n in nodes if isinstance(n, ast.ImportFrom)}
    assert not {n.partition('.')[0] for n in names} & OPTIONAL


@each(
    'package, call',
    [
        ('xarray', lambda: assembly.behaviour(['a'], presentation={'stimulus_id': ['b']})),
        ('pandas', lambda: data.load('GeneratedSentences', '')),
        ('fsspec', lambda: store.names('memory://x')),
    ],
)
def test_a_missing_package_is_one_line_with_the_command(package, call):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError) as caught:
            call()
    said = str(caught.value)
    assert f'needs {package}' in said and "pip install 'jbench[alignment]'" in said and '\n' not in said
