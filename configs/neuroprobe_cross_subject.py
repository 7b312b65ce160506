"""Neuroprobe's cross-subject split: one session of one person trains, those of other people validate and test.

Command: python -m jbench.run --task=ieeg/onset --model=eegnet --config=configs/neuroprobe_cross_subject.py
Channels are means over the contacts of a region, which people share. Otherwise than published: one model answers all
sessions, its epoch chosen by the first halves of all of them; regions are means of voltages. Nobody has run it on the
recordings yet.
"""

from jbench.tasks.ieeg import CROSS_SUBJECT


def get() -> dict[str, object]:
    """The fields that it sets, as `--set` would."""
    return {'split': CROSS_SUBJECT, 'signal.regions': True}
