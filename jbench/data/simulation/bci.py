"""Brain-computer interfaces, simulated: codes, mental tasks, reaches, imagined movement, an oddball, flicker."""

from __future__ import annotations

import functools

import numpy as np

from jbench.data.simulation.paradigm import Paradigm, Tracks, Traits, Trials, box, gaussian, silent, states

CODE_BITS, CODE_HZ = 126, 60.0  # one c-VEP code cycle: 126 frames at 60 Hz, 2.1 s
FLICKER_START = 0.5  # s after the event: the SSVEP trial begins with a cue, as in Wang2017Benchmark

MOTOR = tuple('Fp1 Fp2 F3 Fz F4 FC3 FCz FC4 C5 C3 Cz C4 C6 CP3 CPz CP4 P3 Pz P4 Oz'.split())
MENTAL = tuple('AFz F7 F3 Fz F4 F8 FC3 FC4 T7 C3 Cz C4 T8 CP3 CP4 P3 Pz P4 O1 O2'.split())
ERP = ('Fp1', 'Fp2', 'F3', 'Fz', 'F4', 'FCz', 'T7', 'C3', 'Cz', 'C4', 'T8', 'CPz', 'P3', 'Pz', 'P4', 'Oz')
VISUAL = ('Fz', 'Cz', 'P3', 'Pz', 'P4', 'PO5', 'PO3', 'POz', 'PO4', 'PO6', 'O1', 'Oz', 'O2')
CVEP = ('Fz', 'T7', 'O1', 'POz', 'Oz', 'Iz', 'O2', 'T8')
SYMBOLS = tuple(f'symbol_{k}' for k in range(20))
IMAGERY = ('math', 'letter', 'rotation', 'count', 'baseline')
HANDS = ('right_hand', 'left_hand', 'both_hand', 'rest')
REACHES = tuple(
    f'{way}_{speed}_{reach}'
    for way in ('up', 'down', 'left', 'right')
    for speed in ('slow', 'fast')
    for reach in ('near', 'far')
)
SSVEP_HZ = tuple(round(hz + 0.2 * step, 1) for step in range(5) for hz in range(8, 16))  # order of the real codes
FLICKERS = tuple(f'{f:g}' for f in SSVEP_HZ)


reaching = states({label: {'mu_l': 0.2, 'beta_l': 0.3, 'mu_r': 0.6, 'beta_r': 0.65} for label in REACHES}, (0.5, 2.2))


def motor_execution(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Right-arm reaches with a bell-shaped velocity from 0.5 s on.

    Direction tunes motor and parietal cortex, speed sets the duration, distance the amplitude; the supplementary motor
    area leads; mu and beta desynchronise alike for all reaches, so the classes differ below 6 Hz alone.
    """
    tracks = silent(trials.paradigm.sources, len(trials.t))
    for onset, label in zip(trials.onset, trials.label, strict=True):
        way, speed, reach = trials.paradigm.labels[label].split('_')
        x, y = {'up': (0, 1), 'down': (0, -1), 'left': (-1, 0), 'right': (1, 0)}[way]
        width = {'slow': 0.35, 'fast': 0.18}[speed]
        size = {'near': 0.7, 'far': 1.3}[reach] * who.evoked * rng.normal(1, 0.1)
        i, j = np.searchsorted(trials.t, (onset, onset + 3.0))
        u = trials.t[i:j] - onset - 0.5 - who.slow_delay - rng.normal(0, 0.04)
        bell = gaussian(u, 2.2 * width, width) * size
        tracks['m1_l'][i:j] += (-4 + 6 * x) * bell
        tracks['ppc'][i:j] += (2 + 6 * y) * bell
        tracks['sma'][i:j] += -6 * gaussian(u, 0.1, 0.25) * size**0.5
        tracks['m1_r'][i:j] += (-2 - 2 * x) * bell
    return reaching(trials, who, rng)[0], tracks


def p3(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Every tone: auditory N1 and P2. Targets also: a frontal N2 and a parietal P3 around 0.38 s."""
    tracks = silent(trials.paradigm.sources, len(trials.t))

    def bump(u: np.ndarray, at: float, sd: float) -> np.ndarray:
        return gaussian(u, at + who.slow_delay * at / 0.38, sd)  # a slow subject is slow in proportion

    for onset, label in zip(trials.onset, trials.label, strict=True):
        i, j = np.searchsorted(trials.t, (onset, onset + 0.9))
        u, size = trials.t[i:j] - onset, who.evoked * rng.normal(1, 0.15)
        tone = (-2.0 * bump(u, 0.1, 0.02) + 1.2 * bump(u, 0.18, 0.03)) * size
        tracks['a1_l'][i:j] += tone
        tracks['a1_r'][i:j] += tone
        if trials.paradigm.labels[label] == 'Target':
            tracks['pz'][i:j] += 8 * bump(u, 0.38 + rng.normal(0, 0.02), 0.07) * size
            tracks['fcz'][i:j] += -3 * bump(u, 0.22, 0.03) * size
    return {}, tracks


def ssvep(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Flicker at f for 4 s after the cue, pi/2 more phase every 0.2 Hz, three harmonics, weaker towards high f."""
    tracks = silent(trials.paradigm.sources, len(trials.t))
    for onset, label in zip(trials.onset, trials.label, strict=True):
        f, begin = SSVEP_HZ[label], onset + FLICKER_START
        i, j = np.searchsorted(trials.t, (begin, begin + 4.2))
        u = trials.t[i:j] - begin - 0.12 - who.delay  # 0.12 s from the eye to the cortex
        lit = box(u, 0.05, 4.05, 0.1) * who.evoked * rng.normal(1, 0.1) * 11 / (3 + f)
        phase = round((f - 8) / 0.2) * np.pi / 2
        for harmonic, uv in ((1, 6.0), (2, 3.0), (3, 1.5)):
            w = 2 * np.pi * harmonic * f
            side = 0.5 * uv * lit * np.sin(w * (u - 0.01) + harmonic * phase)
            tracks['v1'][i:j] += uv * lit * np.sin(w * u + harmonic * phase)
            tracks['v1_l'][i:j] += side
            tracks['v1_r'][i:j] += side
    return {}, tracks


@functools.lru_cache(1)
def gold_codes(n: int = 20) -> np.ndarray:
    """`n` Gold codes of 63 bits (x^6+x+1, x^6+x^5+x^2+x+1) modulated by the bit clock: i64[n, 126], runs of 1 or 2."""

    def msequence(taps: tuple[int, ...]) -> np.ndarray:
        bits = [1, 0, 0, 0, 0, 0]
        while len(bits) < 63:
            bits.append(sum(bits[len(bits) - 6 + k] for k in taps) % 2)
        return np.array(bits)

    a, b = msequence((0, 1)), msequence((0, 1, 2, 5))
    gold = np.array([a ^ np.roll(b, k) for k in range(n)])
    return np.repeat(gold, 2, axis=1) ^ np.tile([1, 0], 63)


def cvep(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Every flash (one or two lit frames) starts the same visual response; codes differ in when they flash."""
    sfreq, n = trials.paradigm.sfreq, len(trials.t)
    u = np.arange(int(0.35 * sfreq)) / sfreq - who.delay
    drive = np.zeros(n + len(u))
    for onset, label in zip(trials.onset, trials.label, strict=True):
        bits = gold_codes()[label]
        flash = np.flatnonzero(bits & ~np.roll(bits, 1))
        weight = np.where(np.roll(bits, -1)[flash], 1.0, 0.75) * rng.normal(1, 0.1)  # a short flash is weaker
        drive[np.round((onset + flash / CODE_HZ) * sfreq).astype(int)] += weight
    tracks = {}
    for name, uv, at in (('v1', 6.0, 0.075), ('v1_l', 3.0, 0.085), ('v1_r', 3.0, 0.085)):
        response = (u > 0) * (gaussian(u, at, 0.016) - 0.9 * gaussian(u, at + 0.045, 1.3 * 0.016))
        tracks[name] = np.convolve(drive, uv * who.evoked * response)[:n].astype(np.float32)
    return {}, tracks


VISUAL_SOURCES = {'v1': ('Oz', 14.0), 'v1_l': ('O1', 16.0), 'v1_r': ('O2', 16.0)}
ARM_SOURCES = {'m1_l': ('C3', 14.0), 'sma': ('FCz', 18.0), 'ppc': ('P3', 16.0), 'm1_r': ('C4', 14.0)}
P3_SOURCES = {'pz': ('Pz', 25.0), 'fcz': ('FCz', 25.0), 'a1_l': ('T7', 18.0), 'a1_r': ('T8', 18.0)}
PARADIGMS = (
    Paradigm(
        'cvep',
        CVEP,
        256.0,
        SYMBOLS,
        ((1,) * 20,),
        9.4,
        0.2,
        (0.0, 4.0),
        cvep,
        VISUAL_SOURCES,
        cycles=4,
        cycle=CODE_BITS / CODE_HZ,
        first_code=0,
    ),
    Paradigm(
        'mental_imagery',
        MENTAL,
        256.0,
        IMAGERY,
        ((11,) * 5, (5,) * 5),
        5.0,
        0.3,
        (3.0, 4.0),
        # each mental task has its own pattern of theta, alpha, mu and beta
        states(
            {
                'math': {'theta_f': 1.9, 'par_l': 0.5},
                'letter': {'lang_l': 2.2, 'mu_l': 0.7},
                'rotation': {'par_r': 0.4, 'alpha_r': 0.45, 'alpha_l': 0.6},
                'count': {'theta_f': 1.5, 'mu_l': 0.5, 'mu_r': 0.5},
                'baseline': {'alpha_l': 1.5, 'alpha_r': 1.5},
            },
            (3.3, 7.2),
        ),
    ),
    Paradigm(
        'motor_execution', MOTOR, 250.0, REACHES, ((2,) * 16,), 3.8, 0.4, (0.0, 3.0), motor_execution, ARM_SOURCES
    ),
    Paradigm(
        'motor_imagery',
        MOTOR,
        250.0,
        HANDS,
        ((10,) * 4,),
        4.8,
        0.3,
        (0.0, 4.0),
        # contralateral desynchronisation of mu and beta
        states(
            {
                'right_hand': {'mu_l': 0.3, 'beta_l': 0.4, 'mu_r': 0.9},
                'left_hand': {'mu_r': 0.3, 'beta_r': 0.4, 'mu_l': 0.9},
                'both_hand': {'mu_l': 0.35, 'beta_l': 0.45, 'mu_r': 0.35, 'beta_r': 0.45},
                'rest': {'mu_l': 1.15, 'mu_r': 1.15},
            },
            (0.5, 4.3),
        ),
    ),
    Paradigm('p3', ERP, 250.0, ('Target', 'NonTarget'), ((16, 80),), 0.28, 0.04, (-0.2, 1.0), p3, P3_SOURCES),
    Paradigm('ssvep', VISUAL, 250.0, FLICKERS, ((1,) * 40,), 4.7, 0.2, (FLICKER_START, 4.0), ssvep, VISUAL_SOURCES),
)
