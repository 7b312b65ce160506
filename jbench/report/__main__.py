"""`python -m jbench.report`: the same as `jbench report`."""

from __future__ import annotations

import sys

if __name__ == '__main__':
    if not (sys.flags.safe_path or __file__.startswith(f'{sys.path[0]}/jbench/')):
        del sys.path[0]  # `python -m` puts the current folder there: a numpy.py that lies in it would be run
    from jbench.run import program

    sys.argv.insert(1, 'report')
    program()
