"""Where things lie in the repository."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELPERS = ROOT / 'tests' / 'helpers'
FIXTURES = ROOT / 'tests' / 'fixtures'


def alignment_dir() -> Path:
    """Recordings for alignment: JBENCH_TEST_ALIGNMENT, by default `data_alignment` beside the real recordings.

    Where it is absent the test is skipped, with the reason; with CI set it fails.
    """
    import pytest  # not needed where scripts import this module

    recordings = Path(os.environ.get('JBENCH_TEST_DATA') or ROOT.parent / 'shared' / 'data')
    path = Path(os.environ.get('JBENCH_TEST_ALIGNMENT') or f'{recordings}_alignment')
    if not path.is_dir():
        reason = f'no recordings for alignment at {path}: set JBENCH_TEST_ALIGNMENT to their folder'
        if os.environ.get('CI'):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
