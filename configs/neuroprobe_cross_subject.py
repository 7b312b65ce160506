"""Neuroprobe's cross-subject split: one session of one person trains, those of other people validate and test.

Command: python -m jbench.run --task=configs/neuroprobe_cross_subject.py --model=eegnet
One of the fifteen: --task=configs/neuroprobe_cross_subject.py:ieeg/onset_cross_subject; on the simulated stand-in:
--task=configs/neuroprobe_cross_subject.py:ieeg/onset_cross_subject/SimulatedIeegFilm

Channels are means over the contacts of a region, which people share. Otherwise than published: one model answers all
sessions, its epoch chosen by the first halves of all of them; regions are means of voltages. Nobody has run it on the
recordings yet.
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec import Task
from jbench.tasks.ieeg import ASKED, CROSS_SUBJECT
from jbench.tasks.ieeg import TASKS as IEEG


def _across(task: Task) -> Task:
    name, signal = f'{task.name}_cross_subject', replace(task.signal, regions=True)
    return replace(task, name=name, split=CROSS_SUBJECT, signal=signal)


TASKS = tuple(_across(task) for task in IEEG if task.name in ASKED)
