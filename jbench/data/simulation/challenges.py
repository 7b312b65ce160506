"""Tracks 2 to 4 of the EEG/EMG Foundation Challenge 2026, simulated: mental commands, falling asleep with a headband, a
hand that moves."""

from __future__ import annotations

import numpy as np

from jbench.data.simulation import sleep
from jbench.data.simulation.paradigm import (
    Paradigm,
    Person,
    Source,
    Tracks,
    Traits,
    Trials,
    noise,
    plain,
    shuffled,
    states,
)

# ---- track 2 ----

COMMANDS = tuple('Fz F3 F4 FC5 FC3 FC1 FCz FC2 FC4 FC6 C5 C3 C1 Cz C2 C4 C6 CP3 CPz CP4 P3 Pz P4 PO7 PO8'.split())
INTERFACES = ('Graz', 'BrainHero')


def _commands(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """A session of two interfaces, one after the other: each has all commands equally often."""
    halves = [shuffled(p, session, rng) for _ in INTERFACES]
    length = len(halves[0].t) / p.sfreq
    onset = np.concatenate([halves[0].onset, halves[1].onset + length])
    label = np.concatenate([half.label for half in halves])
    interface = np.repeat(INTERFACES, [len(half.onset) for half in halves])
    return plain(p, onset, label, length + len(halves[1].t) / p.sfreq, interface=interface)


# ---- track 3 ----


def _slept(subject: int, session: int) -> Person:
    """Second evenings of a third of the people are tested."""
    return Person({'split': 'test' if session and subject % 3 == 0 else 'train'})


def _evening(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Awake for 3 to 11 minutes, a minute of N1, half a minute of N2."""
    return sleep.hypnogram(p, [('W', round(rng.uniform(180, 660))), ('N1', 60.0), ('N2', 30.0)])


# ---- track 4 ----

EMG_HZ = 2000.0
N_ELECTRODES = 16
FINGERS: dict[str, Source] = dict.fromkeys(('thumb', 'index', 'middle', 'ring', 'little'), ('', 0.0))
JOINTS = 4  # of a finger
BENT = (0.3, 0.9, 1.2, 0.7)  # rad: how far each of them bends
BAND, SWAY = (20.0, 450.0), 0.8  # Hz: of muscles; of movements
UV, SENSOR, WIDTH = 150.0, 3.0, 0.6  # uV at the strongest electrode; of the sensors; rad
SECONDS = 62.0


def _hand(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """A minute of movement without events."""
    none = np.zeros(0)
    return plain(p, none, none.astype(int), SECONDS)


def bending(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """How far each finger is bent, from 0 to 1, without unit."""
    moved = noise(rng, (len(FINGERS), len(trials.t)), EMG_HZ, lambda f: np.exp(-0.5 * (f / SWAY) ** 2))
    return {}, {name: (1 / (1 + np.exp(-2 * x))).astype(np.float32) for name, x in zip(FINGERS, moved, strict=True)}


def forearm(
    trials: Trials, who: Traits, tracks: np.ndarray, anatomy: np.random.Generator, rng: np.random.Generator
) -> np.ndarray:
    """Samples [36, T]: sixteen electrodes around the forearm in V, then the angles of twenty joints in rad."""
    n, step = len(trials.t), 2 * np.pi / N_ELECTRODES
    places = np.arange(len(FINGERS)) * N_ELECTRODES / len(FINGERS) + anatomy.normal(0, 0.4)
    apart = (np.arange(N_ELECTRODES)[:, None] - places) * step
    gain = np.exp((np.cos(apart) - 1) / WIDTH**2) * np.exp(anatomy.normal(0, 0.2, len(FINGERS)))
    carrier = noise(rng, (len(FINGERS), n), EMG_HZ, lambda f: (f > BAND[0]) & (f < BAND[1]))
    emg = gain.astype(np.float32) @ (UV * tracks * carrier) + SENSOR * rng.standard_normal((N_ELECTRODES, n))
    angles = 0.1 + np.repeat(tracks, JOINTS, axis=0) * np.tile(BENT, len(FINGERS))[:, None]
    return np.concatenate([emg * 1e-6, angles])


def _moved(subject: int, session: int) -> Person:
    """A fifth of the people is tested, another one validates."""
    part = {3: 'valid', 4: 'test'}.get(subject % 5, 'train')
    return Person({'split': part, 'generalization': 'user_stage' if part == 'test' else ''})


PARADIGMS = (
    Paradigm(
        'challenge_bci',
        COMMANDS,
        250.0,
        ('mi', 'sub', 'word'),
        ((5,) * 3, (5,) * 3),
        6.0,
        0.3,
        (1.0, 4.0),
        states(
            {
                'mi': {'mu_r': 0.3, 'beta_r': 0.4, 'mu_l': 0.9},  # of the left hand
                'sub': {'theta_f': 1.9, 'par_l': 0.5, 'par_r': 0.5},
                'word': {'lang_l': 2.2, 'mu_l': 0.7},
            },
            (0.5, 5.5),
        ),
        trial=_commands,
        first_code=0,
    ),
    Paradigm(
        'challenge_sleep',
        ('TP9', 'AF7', 'AF8', 'TP10'),
        128.0,
        sleep.STAGES,
        ((), ()),
        0,
        0,
        (0.0, 5.0),
        sleep.falling_asleep,
        rhythms=sleep.RHYTHMS,
        trial=_evening,
        person=_slept,
    ),
    Paradigm(
        'challenge_pose',
        (*(f'emg{k}' for k in range(N_ELECTRODES)), *(f'joint{k}' for k in range(JOINTS * len(FINGERS)))),
        EMG_HZ,
        (),
        ((),),
        0,
        0,
        (0.0, 5.0),
        bending,
        FINGERS,
        trial=_hand,
        person=_moved,
        device='emg',
        body=forearm,
    ),
)
