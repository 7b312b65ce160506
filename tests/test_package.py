"""What lies beside the package: licence and citation."""

from __future__ import annotations

import re
import tomllib

from places import ROOT

import jbench

PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project']


def test_the_licence_is_the_one_that_the_project_names():
    text = (ROOT / 'LICENSE').read_text(encoding='utf-8')
    assert PROJECT['license'] == 'Apache-2.0'
    assert 'Apache License\n' in text and 'Version 2.0, January 2004' in text and 'END OF TERMS AND CONDITIONS' in text


def test_every_file_says_the_same_version():
    cited = dict(re.findall(r'^([\w-]+): (.+)$', (ROOT / 'CITATION.cff').read_text(encoding='utf-8'), re.M))
    assert cited['version'] == PROJECT['version'] == jbench.__version__
    assert cited['license'] == PROJECT['license']
