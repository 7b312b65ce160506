"""A recipe for small sets, where the published one stops after a few dozen steps, at chance.

Command: python -m jbench.run --task=ssvep/Kalunga2016Online --model=eegnet --config=configs/small_set.py --data_dir=DIR
"""

from jbench.spec import Recipe


def get() -> Recipe:
    """A hundred times the published learning rate, half the epochs, twice the patience."""
    return Recipe(lr=1e-2, max_epochs=20, patience=10)
