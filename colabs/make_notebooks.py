"""Write each notebook of this folder from its source (`*.py`, percent format), run, with what it showed.

What all of them need to open in Colab is added here: a badge, a cell that installs jbench where it is not there (with
jax's own build for a GPU or a TPU, where there is one), a GPU.
The address comes from `Repository` in pyproject.toml.

Command: python colabs/make_notebooks.py [NAME ...]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = sorted(p for p in HERE.glob('*.py') if p != Path(__file__))
PROJECT = tomllib.loads((HERE.parent / 'pyproject.toml').read_text(encoding='utf-8'))['project']
REPOSITORY = PROJECT['urls']['Repository']
COLAB = 'https://colab.research.google.com'
BADGE = (
    f'[![Open in Colab]({COLAB}/assets/colab-badge.svg)]'
    f'({COLAB}{REPOSITORY.replace("https://", "/").replace("github.com", "github")}/blob/main/colabs/{{name}}.ipynb)'
)
INSTALL = f"""\
import importlib.util
import os
import shutil
import subprocess
import sys

if importlib.util.find_spec('jbench') is None:  # a fresh Colab, say
    wanted = ['jbench[alignment,report] @ git+{REPOSITORY}']
    wanted += ['jax[cuda12]'] if shutil.which('nvidia-smi') else []  # where there is a GPU
    wanted += ['jax[tpu]'] if 'TPU_ACCELERATOR_TYPE' in os.environ or os.path.exists('/dev/accel0') else []
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', *wanted], check=True)
    importlib.invalidate_caches()"""
METADATA = {
    'accelerator': 'GPU',
    'colab': {'gpuType': 'T4', 'provenance': [], 'toc_visible': True},
    'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'},
    'language_info': {'name': 'python'},
}


def notebook(source: Path) -> Any:
    """The notebook of a source file, not run: a function of the source and of the address alone."""
    import jupytext
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell

    made = jupytext.reads(source.read_text(encoding='utf-8'), fmt='py:percent')
    title, *others = made.cells
    made.cells = [new_markdown_cell(BADGE.format(name=source.stem)), title, new_code_cell(INSTALL), *others]
    made.metadata = nbformat.from_dict(METADATA)
    made.nbformat, made.nbformat_minor = 4, 5
    for k, cell in enumerate(made.cells):
        cell.id, cell.metadata = f'cell-{k:02d}', nbformat.from_dict({})
    return made


def run(made: Any, folder: Path, kernel: str = 'python3') -> Any:
    """The same notebook with what it shows when it runs in a folder."""
    import nbformat
    from nbclient import NotebookClient

    where = {'metadata': {'path': str(folder)}}
    NotebookClient(made, timeout=1800, kernel_name=kernel, resources=where, record_timing=False).execute()
    made.metadata = nbformat.from_dict(METADATA)
    for cell in made.cells:
        if cell.cell_type == 'code':
            cell.outputs = joined(cell.outputs)
    return made


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs of a cell, with the lines of a stream in one piece however they came."""
    found: list[Any] = []
    for output in outputs:
        if found and output.output_type == found[-1].output_type == 'stream' and output.name == found[-1].name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def main(names: list[str]) -> None:
    """Run and write those that are named, or all of them."""
    import nbformat

    for source in SOURCES:
        if not names or source.stem in names:
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            with tempfile.TemporaryDirectory() as folder:
                made = run(notebook(source), Path(folder))
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cores = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            print(f'{source.stem}: {time.monotonic() - began:.0f} s, {cores:.0f} s of the cores', flush=True)
            source.with_suffix('.ipynb').write_text(nbformat.writes(made) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main(sys.argv[1:])
