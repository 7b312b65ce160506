"""What a person sees while work is under way: whole words, seed and loss at any width, time left."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

from jbench.progress import Progress, shortened

WHAT = 'motor_execution/SimulatedMotorExecution shallow_fbcsp_net seed 33'
NOTE = 'loss 3.073 valid bal_acc 0.062 (best 0.062)'


@pytest.mark.parametrize('room', [36, 40, 60, 80, 120])
def test_at_any_width_words_are_whole_and_seed_and_loss_stay(room):
    text = shortened(WHAT, NOTE, room)
    assert len(text) <= room and 'seed 33 loss 3.073' in text
    assert {*text.split()} <= {*f'{WHAT} {NOTE}'.split(), 'motor_execution'}
    assert room < 120 or text == f'{WHAT} {NOTE}'


def test_a_word_longer_than_the_room_is_all_that_is_left():
    assert shortened('prepare SimulatedP3', '', 10) == 'SimulatedP3'


def bars(width: int) -> list[str]:
    """Lines of a live bar on a terminal of that width."""
    code = (
        'import time\nfrom jbench.progress import Progress\nwith Progress() as p:\n'
        f'    for k in range(4):\n        p.update({WHAT!r}, k, 40, {NOTE!r})\n        time.sleep(0.15)\n'
    )
    leader, follower = pty.openpty()
    env = {**os.environ, 'COLUMNS': str(width), 'LINES': '24', 'TERM': 'xterm'}
    process = subprocess.Popen([sys.executable, '-c', code], stderr=follower, stdout=follower, env=env)
    os.close(follower)
    seen = b''
    while process.poll() is None or select.select([leader], [], [], 0)[0]:
        try:
            seen += os.read(leader, 65536)
        except OSError:  # the process has closed its end
            break
    os.close(leader)
    return [re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', line).strip() for line in re.split(r'[\r\n]+', seen.decode())]


@pytest.mark.parametrize(
    ('width', 'text'), [(60, 'shallow_fbcsp_net seed 33 loss 3.073'), (120, 'valid bal_acc 0.062')]
)
def test_a_bar_has_time_left_and_seed_and_loss_at_any_width(width, text):
    lines = [line for line in bars(width) if line]
    assert all(len(line) <= width and '…' not in line for line in lines)
    assert re.search(r'3/40 .*\d\d:\d\d left ', lines[-1]) and text in lines[-1]
    assert 'seed 33 loss 3.073' in lines[-1]


def test_what_has_no_count_is_said_without_one(capsys):
    with Progress() as progress:
        progress.update('compiling p3/SimulatedP3 eegnet', 0, 1)
        progress.finish('compiling p3/SimulatedP3 eegnet', 'took 3 s')
    assert capsys.readouterr().err.splitlines() == [
        'compiling p3/SimulatedP3 eegnet ...',
        'compiling p3/SimulatedP3 eegnet: took 3 s',
    ]
