"""The encoders of stimuli, in PyTorch: each is given a stimulus and its parts, and gives a vector for each part.

torch, transformers and spacy (extra `stimuli`) are imported when an encoder is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.spec.encoders import Encoder, Segment
from jbench.spec.errors import MissingExtraError, RequestError

SHORTER_SIDE = 518  # pixels; the processor of DINOv2 then makes 224 of them
SOUND_RATE = 16_000  # Hz, of the sounds that wav2vec2 hears
FRAMES = 64  # that V-JEPA 2 sees of each 1 / frequency s
PACKAGES = {
    'image': 'torch, pillow and transformers',
    'text': 'torch and transformers',
    'word': 'spacy',
    'sound': 'torch and transformers',
    'video': 'torch, torchvision, transformers and av',
}
Look = Callable[[Any, Sequence[Any]], np.ndarray]


def load(name: str, encoder: Encoder, source: str | Path) -> Look:
    """The encoder of a table entry, from its folder or what its hub calls it.

    Raises: MissingExtraError; RequestError where its files are not there or damaged.
    """
    make = {'image': _image, 'text': _text, 'word': _word, 'sound': _sound, 'video': _video}[encoder.kind]
    try:
        return make(encoder, str(source))
    except ImportError as error:
        raise MissingExtraError(PACKAGES[encoder.kind], 'stimuli', f'encoder {name}') from error
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition('\n')[0]
        raise RequestError(f'encoder {name}: {source} cannot be loaded: {reason}; expected {encoder.model}') from error


def _pretrained(source: str) -> tuple[Any, Callable[..., Any]]:
    """The configuration, and a function of inputs that gives the hidden states, one array [tokens, D] a layer."""
    import torch
    from transformers import AutoModel

    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    model = AutoModel.from_pretrained(source).to(device).eval()

    def states(**inputs: Any) -> list[np.ndarray]:
        with torch.inference_mode():
            reason = model(**{k: v.to(device) for k, v in inputs.items()}, output_hidden_states=True)
        return [s[0].float().cpu().numpy() for s in reason.hidden_states]

    return model.config, states


def averaged(states: Sequence[np.ndarray], layers: Sequence[float]) -> np.ndarray:
    """Mean over the chosen layers: int(share * depth), each once; layer 0 is the input of the first block."""
    numbers = sorted({int(share * (len(states) - 1)) for share in layers})
    total: np.ndarray = sum(states[k] for k in numbers) / len(numbers)  # type: ignore[assignment]
    return total


def resized(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height with SHORTER_SIDE as the smaller one, the other rounded down."""
    width, height = (SHORTER_SIDE * n // min(size) for n in size)
    return width, height


def seen(times: np.ndarray, end: float, frequency: float) -> np.ndarray:
    """Numbers of the FRAMES frames that show the 1 / frequency s before `end`, of frames at `times` (s).

    A film is counted from its first frame, whose own time may be later than 0.
    """
    at = np.maximum(0, end - np.arange(FRAMES)[::-1] / FRAMES / frequency)
    return np.asarray(np.searchsorted(times - times[0], at, 'right') - 1)


def _image(encoder: Encoder, source: str) -> Look:
    from PIL import Image
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(source)
    _, states = _pretrained(source)

    def look(path: Path, parts: Sequence[Any]) -> np.ndarray:
        with Image.open(path) as file:
            image = file.convert('RGB').resize(resized(file.size), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, np.float32).transpose(2, 0, 1) / 255
        inputs = processor(images=pixels, do_rescale=False, return_tensors='pt')
        return averaged(states(**inputs), encoder.layers).mean(0)[None].repeat(len(parts), 0)

    return look


def _text(encoder: Encoder, source: str) -> Look:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, truncation_side='left')
    config, states = _pretrained(source)
    longest = min(tokenizer.model_max_length, config.max_position_embeddings)

    def look(text: str, parts: Sequence[Any]) -> np.ndarray:
        inputs = tokenizer(text, add_special_tokens=False, truncation=True, max_length=longest, return_tensors='pt')
        return averaged(states(**inputs), encoder.layers).mean(0)[None].repeat(len(parts), 0)

    return look


def _word(encoder: Encoder, source: str) -> Look:
    import spacy

    words = spacy.load(source)
    return lambda text, parts: np.asarray(words(text).vector, np.float32)[None].repeat(len(parts), 0)


def _sound(encoder: Encoder, source: str) -> Look:
    """Whole sounds are heard; what lies outside of one is zero."""
    from transformers import AutoFeatureExtractor

    from jbench.data.windows import cut

    extractor = AutoFeatureExtractor.from_pretrained(source)
    _, states = _pretrained(source)

    def look(path: Path, parts: Sequence[Segment]) -> np.ndarray:
        sound, seconds = _read_sound(path)
        inputs = extractor(sound, sampling_rate=SOUND_RATE, do_normalize=True, return_tensors='pt')
        heard = averaged(states(input_values=inputs['input_values']), encoder.layers).T  # [D, T]
        n = max(1, round(seconds * encoder.frequency))
        heard = heard[:, np.arange(n) * heard.shape[1] // n]  # the nearest earlier one, as torch's interpolate
        pieces = [
            np.array_split(cut(heard, encoder.frequency, start, length), encoder.groups, axis=1)
            for start, length in parts
        ]
        return np.stack([np.concatenate([p.mean(1) for p in piece]) for piece in pieces])

    return look


def _read_sound(path: Path) -> tuple[np.ndarray, float]:
    """A WAV file at SOUND_RATE, one channel, mean 0 and sd 1; and its seconds."""
    from scipy import signal
    from scipy.io import wavfile

    rate, samples = wavfile.read(path)
    whole = samples / np.iinfo(samples.dtype).max if samples.dtype.kind == 'i' else samples.astype(np.float64)
    mono = whole.reshape(len(whole), -1).mean(1)
    mono = signal.resample_poly(mono, SOUND_RATE, rate)
    return ((mono - mono.mean()) / (1e-8 + mono.std(ddof=1))).astype(np.float32), len(samples) / rate


def _video(encoder: Encoder, source: str) -> Look:
    """Of each 1 / frequency s, FRAMES frames that end with it are seen; vectors of the film's parts are averaged."""
    import av
    from transformers import AutoVideoProcessor

    from jbench.data.windows import cut

    processor = AutoVideoProcessor.from_pretrained(source)
    _, states = _pretrained(source)

    def look(path: Path, parts: Sequence[Segment]) -> np.ndarray:
        with av.open(str(path)) as file:
            shown = [(f.time, f.to_ndarray(format='rgb24')) for f in file.decode(video=0)]
        times = np.array([t for t, _ in shown])
        seconds = np.ptp(times) * len(shown) / max(1, len(shown) - 1)
        vectors = []
        for end in np.linspace(0, seconds, max(1, round(seconds * encoder.frequency)) + 1)[1:]:
            frames = np.stack([shown[k][1] for k in seen(times, end, encoder.frequency)])
            inputs = processor(videos=[frames], return_tensors='pt')
            vectors.append(averaged(states(**inputs), encoder.layers).mean(0))
        film = np.stack(vectors, 1)
        return np.stack([cut(film, encoder.frequency, start, length).mean(1) for start, length in parts])

    return look
