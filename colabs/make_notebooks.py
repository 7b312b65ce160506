"""Write each notebook of this folder from its source (`*.py`, percent format): no outputs, stable cell names.

Command: python colabs/make_notebooks.py
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
SOURCES = sorted(p for p in HERE.glob('*.py') if p != Path(__file__))


def notebook(source: Path) -> str:
    """The notebook of a source file, as text: a function of the source alone."""
    import jupytext
    import nbformat

    made = jupytext.reads(source.read_text(encoding='utf-8'), fmt='py:percent')
    kernel = {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}
    made.metadata = nbformat.from_dict({'kernelspec': kernel, 'language_info': {'name': 'python'}})
    made.nbformat, made.nbformat_minor = 4, 5
    for k, cell in enumerate(made.cells):
        cell.id, cell.metadata = f'cell-{k:02d}', nbformat.from_dict({})
    return nbformat.writes(made) + '\n'


def main() -> None:
    """Write all of them."""
    for source in SOURCES:
        source.with_suffix('.ipynb').write_text(notebook(source), encoding='utf-8')


if __name__ == '__main__':
    main()
