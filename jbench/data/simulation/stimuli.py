"""What is seen, heard, read or typed, simulated: pictures, films, speech, sentences, words, keys.

A stimulus is a name. Its latent (16 numbers) is drawn from the name; its embedding, of any size, is a linear image of
the latent with noise, and the brain answers it with W . latent on five bumps at six sources. So what a network must
find is linear, and known: `embedding` stands in for the encoders of the real sets.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jbench.data.simulation.paradigm import (
    LEAD_IN,
    LEAD_OUT,
    Bump,
    Paradigm,
    Person,
    Signature,
    Source,
    Tracks,
    Traits,
    Trials,
    gaussian,
    plain,
    responses,
    stream,
)

SFREQ = 128.0  # Hz
CHANS = tuple('Fz FCz Cz T7 T8 CPz P7 P3 Pz P4 P8 PO7 PO8 O1 Oz O2'.split())
# as Neuromag names them: a magnetometer (1) and two planar gradiometers (2, 3) at each of 24 places
HELMET = tuple(f'MEG{place:02d}1{kind}' for place in range(1, 25) for kind in (1, 2, 3))
SOURCES: dict[str, Source] = {
    'o1': ('O1', 16.0),
    'o2': ('O2', 16.0),
    'p7': ('P7', 20.0),
    'p8': ('P8', 20.0),
    't7': ('T7', 18.0),
    'fz': ('Fz', 20.0),
}
N_LATENT = 16
BUMPS = ((0.08, 0.02), (0.14, 0.03), (0.22, 0.04), (0.36, 0.06), (0.56, 0.08))  # s after a stimulus, sd in s
UV = 3.0  # rms of each bump at each source; of speech, which does not stop, twice that
SLOT, AGAIN = 1.0, 0.5  # s of speech that have one latent, and how often it is answered
WORDS = tuple(
    'river stone garden winter bread candle mirror silver yellow forest market window bridge pencil summer kitchen '
    'horse doctor letter island castle button rabbit thunder basket orange village teacher morning feather blanket '
    'engine ladder pocket rocket tunnel velvet walnut zebra quiet jacket journey puzzle quarter oxygen subway fabric '
    'guitar hammer insect jungle knight lemon magnet needle olive pepper quilt ribbon saddle turtle uniform vessel '
    'whale xylophone yogurt zipper anchor beaver camel dragon eagle falcon giraffe harbor igloo jaguar kettle lantern '
    'meadow nectar orchid pigeon queen raven salmon tiger umbrella violin wagon expert young zero acrobat balloon '
    'cherry desert elbow flower glacier helmet iceberg jewel koala lizard monkey noodle ocean parrot quartz robot '
    'spider temple unicorn volcano wizard pixel yacht zone'.split()
)


# ---- stimuli and their embeddings ----


@functools.lru_cache(10_000)
def latent(name: str) -> np.ndarray:
    """What a stimulus means: f64 [16], unit variance. Names in one folder have part of it in common."""
    own = stream('stimulus', str(name)).standard_normal(N_LATENT)
    folder, slash, _ = name.rpartition('/')
    return 0.6 * latent(folder) + 0.8 * own if slash else own


def embedding(name: str, size: int) -> np.ndarray:
    """The embedding of a stimulus: f32 [size]. `file@start+duration` is a part of a sound (s), seen as four quarters;
    of a film it is all of it."""
    part = re.fullmatch(r'(.*)@(-?[\d.]+)\+([\d.]+)', name, re.DOTALL)
    if part and part[1].endswith('.wav'):
        start, duration = float(part[2]), float(part[3])
        k = np.floor((start + duration * (np.arange(64) + 0.5) / 64) / SLOT).astype(int)
        slots = np.stack([latent(f'{part[1]}#{i}') for i in k]).reshape(4, 16, N_LATENT)
        return np.concatenate([_image(z, size // 4, name) for z in slots.mean(1)])
    name = part[1] if part else name
    return _image(latent(name), size, name)


def _image(z: np.ndarray, size: int, name: str) -> np.ndarray:
    noise = stream('own', str(name), size).standard_normal(size)
    return (z @ _mixing(size) / N_LATENT**0.5 + 0.3 * noise).astype(np.float32)


@functools.lru_cache(8)
def _mixing(size: int) -> np.ndarray:
    return stream('embedding', size).standard_normal((N_LATENT, size))


# ---- the brain's answer ----


def meaning(field: str, every: float = 0.0) -> Signature:
    """Each event is answered by the latent of the stimulus that its `field` names, again `every` so many s."""

    def shown(trials: Trials) -> Iterator[tuple[float, str]]:
        for onset, lasts, name in zip(trials.onset, trials.duration, trials.events[field], strict=True):
            for start in np.arange(0, lasts, every) if every else (0.0,):
                yield onset + start, name

    return lambda trials, who, rng: answered(trials, who, rng, shown(trials))


def listening(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Every half second of the story is answered."""
    times = np.arange(0, trials.t[-1], AGAIN)
    return answered(trials, who, rng, ((t, f'{STORY}#{int(t / SLOT)}') for t in times), 2 * UV)


def answered(
    trials: Trials, who: Traits, rng: np.random.Generator, shown: Iterable[tuple[float, str]], uv: float = UV
) -> tuple[Tracks, Tracks]:
    """Tracks of the answers to stimuli at given times (s); a fifth of what a subject answers is its own."""
    names, sfreq = list(trials.paradigm.sources), trials.paradigm.sfreq
    shape = (len(names), len(BUMPS), N_LATENT)
    common = stream('cortex').standard_normal(shape)
    own = 0.2**0.5 * rng.standard_normal(shape)
    weights = uv * who.evoked * (0.8**0.5 * common + own) / N_LATENT**0.5
    u = np.arange(int(0.9 * sfreq)) / sfreq
    bumps = np.stack([gaussian(u, at + who.delay, sd) for at, sd in BUMPS])  # [bump, T]
    out = np.zeros((len(names), len(trials.t) + len(u)), np.float32)
    for onset, name in shown:
        i = round(onset * sfreq)
        size = rng.normal(1, 0.1)
        out[:, i : i + len(u)] += size * (weights @ latent(name)) @ bumps
    return {}, dict(zip(names, out[:, : len(trials.t)], strict=True))


# ---- when ----


def _shown(p: Paradigm, kind: str, rng: np.random.Generator, lasts: float, **columns: list[str]) -> Trials:
    """Stimuli one after another, an event of type `kind` each."""
    n = len(next(iter(columns.values())))
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, n))
    onset = np.round(onset * p.sfreq) / p.sfreq
    table = {'type': np.full(n, kind), 'duration': np.full(n, lasts)} | {k: np.array(v) for k, v in columns.items()}
    trials = plain(p, onset, np.zeros(n, int), onset[-1] + lasts + LEAD_OUT, **table)
    return trials._replace(events={k: v for k, v in trials.events.items() if k not in ('code', 'label')})


def images(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """The first recording shows 180 pictures once, the second 60 others three times."""
    n, times, part = ((180, 1, 'train'), (60, 3, 'test'))[session]
    files = [f'images/{part}_{k:03d}/0.jpg' for k in range(n)] * times
    return _shown(p, 'Image', rng, 0.2, filepath=rng.permutation(files).tolist())


def _videos(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """Three clips of each of 40 concepts."""
    files = rng.permutation([f'videos/concept_{c:02d}/{k}.mp4' for c in range(40) for k in range(3)]).tolist()
    return _shown(p, 'Video', rng, 2.0, filepath=files, concept=[f.split('/')[1] for f in files])


@functools.cache
def sentences(n_words: int, n: int) -> tuple[str, ...]:
    """`n` sentences of so many words; each word comes once before any comes twice. The same in every recording."""
    rng = stream('sentences', n_words)
    words: list[str] = []
    while len(words) < n * n_words:
        words += rng.permutation(WORDS).tolist()
    return tuple(' '.join(words[k * n_words : (k + 1) * n_words]) for k in range(n))


def _read_sentences(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """100 sentences, 3 s each."""
    return _shown(p, 'Sentence', rng, 3.0, text=rng.permutation(sentences(6, 100)).tolist())


def _spread(texts: Iterable[str]) -> dict[str, list[str]]:
    """The words of sentences, each with its sentence and that one's number."""
    rows = [(word, text, str(k)) for k, text in enumerate(texts) for word in text.split()]
    return dict(zip(('text', 'sentence', 'sequence_id'), map(list, zip(*rows, strict=True)), strict=True))


def _read_words(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    return _shown(p, 'Word', rng, 0.3, **_spread(sentences(5, 60)))


STORY = 'audio/story.wav'


def _story(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """The story that all hear: an event of type Audio, and its words."""
    trials = _shown(p, 'Word', stream('story'), 0.3, **_spread(sentences(3, 85)))
    sound = {'onset': 0.0, 'duration': float(trials.t[-1]), 'type': 'Audio', 'filepath': STORY}
    n = len(trials.onset)
    words = {**trials.events, 'filepath': np.full(n, '')}
    return trials._replace(events={k: np.r_[[sound.get(k, '')], v] for k, v in words.items()})


# ---- keys ----

TYPED = tuple('F3 Fz F4 FC3 FCz FC4 C5 C3 C1 Cz C2 C4 C6 CP5 CP3 CPz CP4 CP6 P3 P4'.split())
STRIP = {  # of the motor cortex, from the thumb upwards
    'left': ('C6', 'CCP6h', 'C4', 'CCP4h', 'C2'),
    'right': ('C5', 'CCP5h', 'C3', 'CCP3h', 'C1'),
}
FINGERS: dict[str, Source] = {
    f'{hand}_{finger}': (electrode, 12.0)
    for hand, strip in STRIP.items()
    for finger, electrode in zip(('thumb', 'index', 'middle', 'ring', 'little'), strip, strict=True)
}
KEYS = {  # finger -> its keys; the first moves it most
    'left_little': 'qaz',
    'left_ring': 'wsx',
    'left_middle': 'edc',
    'left_index': 'tgrfbv',
    'right_index': 'yhujnm',
    'right_middle': 'ik',
    'right_ring': 'ol',
    'right_little': 'p',
    'right_thumb': (' ',),
}


def _pressed(finger: str, share: float) -> tuple[Bump, ...]:
    """The finger's cortex goes negative before the press and positive after; keys of one finger differ in size."""
    uv = 14 - 8 * share
    return ((finger, -uv, -0.09, 0.05), (finger, 0.7 * uv, 0.09, 0.05))


PRESSES = {
    '<space>' if key == ' ' else key: _pressed(finger, k / len(keys))
    for finger, keys in KEYS.items()
    for k, key in enumerate(keys)
}


def typed(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    """24 sentences of three words: events of type Keystroke. Trials 0 and 1 would be practice, and are not there."""
    texts = rng.permutation(sentences(3, 24)).tolist()
    rows = [('<space>' if c == ' ' else c, text, str(trial)) for trial, text in enumerate(texts, 2) for c in text]
    button, text, trial = (np.array(column) for column in zip(*rows, strict=True))
    label = np.array([p.labels.index(b) for b in button])
    onset = LEAD_IN + np.cumsum(p.soa + rng.uniform(0, p.jitter, len(rows)))
    columns = {'button': button, 'text': text, 'trial_id': trial, 'type': np.full(len(rows), 'Keystroke')}
    trials = plain(p, onset, label, onset[-1] + LEAD_OUT, duration=np.full(len(rows), 0.1), **columns)
    return trials._replace(events={k: v for k, v in trials.events.items() if k not in ('code', 'label')})


def part(subject: int, session: int) -> Person:
    """The first recording is of the part 'train', the second of 'test'."""
    return Person({'split': ('train', 'test')[session]})


def _site(subject: int, session: int) -> Person:
    return Person({'site': 'SIM'})


def _row(name: str, soa: float, window: tuple[float, float], signature: Signature, **more: Any) -> Paradigm:
    return Paradigm(name, CHANS, SFREQ, ('',), ((),), soa, 0.1, window, signature, SOURCES, **more)


IMAGE = _row('image', 0.6, (-0.2, 1.0), meaning('filepath'), trial=images, person=part)._replace(counts=((), ()))
TYPING = _row('typing', 0.25, (-0.2, 1.0), responses(PRESSES), trial=typed)._replace(
    chans=TYPED, labels=tuple(PRESSES), sources=FINGERS
)
PARADIGMS = (
    IMAGE,
    IMAGE._replace(name='meg_image', device='meg', chans=HELMET),
    _row('sentence', 3.2, (0.0, 3.0), meaning('text', 0.5), trial=_read_sentences),
    _row('speech', 1.05, (-0.5, 3.0), listening, trial=_story),  # three words last longer than a window
    TYPING,
    TYPING._replace(name='meg_typing', device='meg', chans=HELMET),
    _row('video', 2.1, (0.0, 2.0), meaning('filepath', 0.5), trial=_videos),
    _row('word', 0.45, (-0.5, 3.0), meaning('text'), trial=_read_words, person=_site),
)
