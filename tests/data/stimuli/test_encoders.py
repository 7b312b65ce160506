"""Embeddings of stimuli: vectors made elsewhere are imported, others computed once, by content.

The networks are tiny, with random weights, saved by the test as a hub would serve them; those tests need the extra
`stimuli` and are skipped without it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from jbench import files
from jbench.data.stimuli import embed, torch_encoders
from jbench.spec import encoders
from jbench.spec.errors import MissingExtraError, RequestError

NAMES = ('a.png', 'b.png', 'c.png')


def save(path: Path, vectors: dict[str, np.ndarray]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == '.npz':
        np.savez(path, **vectors)  # as anybody would
    else:
        from safetensors.numpy import save_file

        save_file(vectors, path)
    return path


@pytest.mark.parametrize('suffix', ['.npz', '.safetensors'])
def test_vectors_made_elsewhere_are_imported(tmp_path: Path, suffix: str) -> None:
    vectors = {n: np.random.default_rng(k).normal(size=4).astype(np.float32) for k, n in enumerate(NAMES)}
    path = save(tmp_path / f'v{suffix}', vectors)
    found = embed.embed('dinov2_giant', ['b.png', 'a.png', 'b.png'], tmp_path / 'cache', path)
    np.testing.assert_array_equal(found, [vectors['b.png'], vectors['a.png'], vectors['b.png']])
    with pytest.raises(RequestError, match=r'no vector of 12 stimuli: x0, x1, .* and 2 more'):
        embed.embed('dinov2_giant', ['a.png', *(f'x{k}' for k in range(12))], tmp_path, path)
    path = save(tmp_path / f'w{suffix}', {**vectors, 'c.png': np.zeros(5, np.float32)})
    with pytest.raises(RequestError, match='one length'):
        embed.embed('dinov2_giant', NAMES, tmp_path, path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RequestError, match=f'{path.name}: cannot be read'):
        embed.embed('dinov2_giant', NAMES, tmp_path, path)


class Shouter:
    """An encoder of sounds that counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, path: Path, parts: list[encoders.Segment]) -> np.ndarray:
        self.asked.append((path.name, len(parts)))
        return np.array([[len(path.read_bytes()), start, length] for start, length in parts])


def test_each_stimulus_is_looked_at_once_and_work_that_was_stopped_goes_on(tmp_path, monkeypatch) -> None:
    for name, text in (('a.wav', 'one'), ('b.wav', 'three'), ('same.wav', 'one')):
        (tmp_path / name).write_text(text)
    look, hashed = Shouter(), list[str]()
    monkeypatch.setattr(torch_encoders, 'load', lambda name, encoder, source: look)
    digest = files.sha256_file
    monkeypatch.setattr(files, 'sha256_file', lambda path: hashed.append(path.name) or digest(path))
    names = [f'a.wav@{k}.000+2.000' for k in range(3)] + ['b.wav@-1.500+2.000', 'b.wav@-1.500+2.000']

    class Stop(Exception):
        pass

    def stop(what: str, done: int, total: int) -> None:
        assert (what, total) == ('embed stimuli by wav2vec2_xlsr', 4)
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        embed.embed('wav2vec2_xlsr', names, tmp_path / 'c', 'hub/name', root=tmp_path, report=stop)
    found = embed.embed('wav2vec2_xlsr', names, tmp_path / 'c', 'hub/name', root=tmp_path)
    assert look.asked == [('a.wav', 3), ('b.wav', 1)] and hashed == ['a.wav', 'b.wav'] * 2, 'each file read once a call'
    assert found.tolist() == [[3, 0, 2], [3, 1, 2], [3, 2, 2], [5, -1.5, 2], [5, -1.5, 2]]
    embed.embed('wav2vec2_xlsr', ['same.wav@1.000+2.000'], tmp_path / 'c', 'hub/name', root=tmp_path)
    assert len(look.asked) == 2, 'the same content under another name'
    embed.embed('wav2vec2_xlsr', names[:1], tmp_path / 'c', 'hub/other', root=tmp_path)
    (tmp_path / 'a.wav').write_text('changed')
    embed.embed('wav2vec2_xlsr', names[:1], tmp_path / 'c', 'hub/name', root=tmp_path)
    assert look.asked[2:] == [('a.wav', 1), ('a.wav', 1)], 'another encoder, other content'
    with pytest.raises(RequestError, match=r'2 stimuli are not below .*: x.wav@0.000\+1.000, y.wav'):
        gone = ['x.wav@0.000+1.000', 'y.wav@0.000+1.000']
        embed.embed('wav2vec2_xlsr', [*names, *gone], tmp_path / 'c', 'hub/name', root=tmp_path)


def prepared(folder: Path, names: tuple[str, ...]) -> Path:
    targets = np.array([json.dumps([n, n]) for n in names])
    files.write_atomic(folder / 'index.npz', files.npz_bytes({'window.target': targets}))
    return folder


def test_what_a_prepared_set_is_given(tmp_path: Path) -> None:
    """Of files in the data folder; without any, the message names both ways to have them."""
    import dataclasses

    import answers

    from jbench.plan import select

    task = answers.TASKS['words']
    dataset = dataclasses.replace(answers.DATASET, source='tiny', simulated=False)  # a source without vectors
    folder = prepared(tmp_path / 'set', ('b', 'a', 'b'))
    assert select.tasks()

    def provide() -> None:
        embed.provide(task, dataset, folder, tmp_path, tmp_path / 'work', lambda *facts: None)

    expected = r'en_core_web_lg into .*/encoders/spacy_lg \(--download does\), or vectors .*spacy_lg.safeten'
    with pytest.raises(RequestError, match=expected):
        provide()
    path = tmp_path / 'Answers' / 'embeddings' / 'spacy_lg.npz'
    save(path, {n: np.full(4, k, np.float32) for k, n in enumerate('ab')})
    with pytest.raises(RequestError, match=r'must be finite numbers \[2, 300\], got \[2, 4\]'):
        provide()
    assert not (folder / 'stimuli.npz').exists()
    save(path, {n: np.full(300, k, np.float32) for k, n in enumerate('ab')})
    provide()
    assert embed.stored(folder, ['b', 'a', 'a'])[:, 0].tolist() == [1, 0, 0]
    save(path, {n: np.full(300, k + 5, np.float32) for k, n in enumerate('ab')})
    provide()  # others lie there now
    assert embed.stored(folder, ['b', 'a'])[:, 0].tolist() == [6, 5]
    path.unlink()
    provide()  # there already
    with pytest.raises(RequestError, match='not there'):
        embed.stored(folder, ['c'])


def test_the_table_is_that_of_the_protocol() -> None:
    sizes = {name: e.size for name, e in encoders.ENCODERS.items()}
    assert sizes == {'dinov2_giant': 1536, 'gpt2': 768, 'spacy_lg': 300, 'wav2vec2_xlsr': 4096, 'vjepa2_vitg': 1408}
    for name, depth, layers in (('dinov2_giant', 40, [26]), ('gpt2', 12, [8]), ('wav2vec2_xlsr', 24, [21, 22, 24])):
        states = [np.full((2, 3), k) for k in range(depth + 1)]
        found = torch_encoders.averaged(states, encoders.ENCODERS[name].layers)
        np.testing.assert_allclose(found, np.full((2, 3), np.mean(layers)))


def test_pictures_and_films_are_seen_as_published() -> None:
    """torchvision's size, int(518 * long / short); and frames from the first one on, whatever its time."""
    assert torch_encoders.resized((318, 212)) == (777, 518) and torch_encoders.resized((40, 60)) == (518, 777)
    for begin in (0.0, 1.4):
        frames = torch_encoders.seen(begin + np.arange(48) / 24, 0.26, 4.0)
        assert frames[0] == 0 and frames[-1] == 6 and (np.diff(frames) >= 0).all()


# ---- networks: tiny ones ----


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch):
    # A wheel of torchvision that wants CUDA libraries cannot load its operators; no encoder calls them.
    monkeypatch.setitem(sys.modules, 'torchvision._meta_registrations', ModuleType('none'))
    pytest.importorskip('transformers', reason="the extra 'stimuli' is not installed")
    found = pytest.importorskip('torch', reason="the extra 'stimuli' is not installed")
    found.manual_seed(0)
    return found


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, 'transformers', None)
    with pytest.raises(MissingExtraError, match=r"pip install 'jbench\[stimuli\]'"):
        embed.embed('gpt2', ['one two'], tmp_path / 'c', tmp_path)


def test_images(tmp_path: Path, torch) -> None:
    from PIL import Image
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    config = Dinov2Config(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, image_size=28, patch_size=14)
    model = Dinov2Model(config).eval()
    model.save_pretrained(tmp_path / 'net')
    BitImageProcessor(
        size={'shortest_edge': 32}, crop_size={'height': 28, 'width': 28}, do_convert_rgb=True
    ).save_pretrained(tmp_path / 'net')
    for k, n in enumerate(NAMES):
        pixels = np.random.default_rng(k).integers(0, 255, (40, 60, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / n)
    found = embed.embed('dinov2_giant', NAMES, tmp_path / 'cache', tmp_path / 'net', root=tmp_path)
    assert found.shape == (3, 16) and np.ptp(found, axis=0).max() > 0.01
    again = embed.embed('dinov2_giant', NAMES[::-1], tmp_path / 'cache', tmp_path / 'net', root=tmp_path)
    np.testing.assert_array_equal(again, found[::-1])


def test_texts(tmp_path: Path, torch) -> None:
    """Against the hidden states as the library gives them: layer int(0.6667 * 3) = 2, mean over tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

    words = 'one two three four five'.split()
    tokenizer = Tokenizer(models.WordLevel({w: k for k, w in enumerate([*words, '?'])}, unk_token='?'))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / 'net')
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=3, n_head=2, n_positions=4, vocab_size=6)).eval()
    model.save_pretrained(tmp_path / 'net')
    texts = ['one two', 'three', 'one two three four five']
    found = embed.embed('gpt2', texts, tmp_path / 'cache', tmp_path / 'net')
    for text, vector in zip(texts, found, strict=True):
        ids = torch.tensor([[words.index(w) for w in text.split()][-4:]])  # what is too long loses its beginning
        with torch.no_grad():
            expected = model(ids, output_hidden_states=True).hidden_states[2][0].mean(0)
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)


def test_sounds(tmp_path: Path, torch) -> None:
    """Four quarters of a part, joined; what lies before the sound is zero."""
    from scipy.io import wavfile
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=8,
        num_hidden_layers=24,
        num_attention_heads=2,
        intermediate_size=16,
        conv_dim=(8, 8),
        conv_stride=(10, 16),
        conv_kernel=(10, 16),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )
    model = Wav2Vec2Model(config).eval()
    model.save_pretrained(tmp_path / 'net')
    Wav2Vec2FeatureExtractor().save_pretrained(tmp_path / 'net')
    sound = np.random.default_rng(0).normal(0, 3000, (8000 * 4, 2)).astype(np.int16)  # stereo, 4 s
    wavfile.write(tmp_path / 'a.wav', 8000, sound)
    parts = [encoders.part_name('a.wav', *p) for p in ((0.0, 2.0), (1.0, 2.0), (-1.0, 2.0))]
    found = embed.embed('wav2vec2_xlsr', parts, tmp_path / 'cache', tmp_path / 'net', root=tmp_path)
    assert found.shape == (3, 32)
    np.testing.assert_allclose(found[0, 16:], found[1, :16], rtol=1e-5)  # seconds 1 to 2, in quarters of .5 s
    np.testing.assert_allclose(found[2, 16:], found[0, :16], rtol=1e-5)
    assert not found[2, :16].any()


def film(path: Path, n: int = 50, rate: int = 25) -> np.ndarray:
    """Two seconds of noise that changes with each frame, without loss; its frames u8 [n, 32, 48, 3]."""
    import av

    frames = np.random.default_rng(0).integers(0, 255, (n, 32, 48, 3), np.uint8)
    with av.open(str(path), 'w') as file:
        stream = file.add_stream('ffv1', rate=rate)
        stream.width, stream.height, stream.pix_fmt = 48, 32, 'bgr0'
        for pixels in [*frames, None]:  # none: the last packets
            for packet in stream.encode(None if pixels is None else av.VideoFrame.from_ndarray(pixels, 'rgb24')):
                file.mux(packet)
    return frames


def test_films(tmp_path: Path, torch) -> None:
    """Against the library's own steps: of each quarter of a second the 64 frames that end with it, layer 2 of 3, mean
    over tokens; a part of a film is the mean of its quarters."""
    pytest.importorskip('av', reason="the extra 'stimuli' is not installed")
    pytest.importorskip('torchvision', reason="the extra 'stimuli' is not installed")
    from transformers import VJEPA2Config, VJEPA2Model, VJEPA2VideoProcessor

    sizes = {'patch_size': 16, 'crop_size': 32, 'frames_per_clip': 64, 'tubelet_size': 2, 'mlp_ratio': 2}
    blocks = {'hidden_size': 24, 'num_attention_heads': 2, 'num_hidden_layers': 3}
    model = VJEPA2Model(VJEPA2Config(**sizes, **blocks, **{f'pred_{k}': v for k, v in blocks.items()})).eval()
    model.save_pretrained(tmp_path / 'net')
    processor = VJEPA2VideoProcessor(size={'shortest_edge': 36}, crop_size={'height': 32, 'width': 32})
    processor.save_pretrained(tmp_path / 'net')
    frames = film(tmp_path / 'a.mkv')  # 2 s

    def expected(quarter: int) -> np.ndarray:
        shown = [frames[min(49, 25 * max(0, 64 * quarter + k) // 256)] for k in range(1, 65)]
        inputs = processor(videos=[np.stack(shown)], return_tensors='pt')
        with torch.no_grad():
            return model(**inputs, output_hidden_states=True).hidden_states[2][0].mean(0).numpy()

    parts = [encoders.part_name('a.mkv', *p) for p in ((0.0, 0.25), (1.0, 0.25), (0.0, 2.0), (-0.25, 0.5))]
    found = embed.embed('vjepa2_vitg', parts, tmp_path / 'cache', tmp_path / 'net', root=tmp_path)
    quarters = [expected(k) for k in range(8)]
    assert np.ptp(quarters, axis=0).max() > 1e-3, 'the film changes'
    wanted = [quarters[0], quarters[4], np.mean(quarters, 0), quarters[0] / 2]  # before the film there is nothing
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_words(tmp_path: Path) -> None:
    spacy = pytest.importorskip('spacy', reason="the extra 'stimuli' is not installed")
    words = spacy.blank('en')
    words.vocab.set_vector('river', np.arange(5, dtype=np.float32))
    words.to_disk(tmp_path / 'net')
    found = embed.embed('spacy_lg', ['river', 'unheard'], tmp_path / 'cache', tmp_path / 'net')
    assert found.tolist() == [[0, 1, 2, 3, 4], [0] * 5]


def test_a_folder_that_holds_no_encoder_is_refused(tmp_path: Path, torch) -> None:
    (tmp_path / 'net').mkdir()
    with pytest.raises(
        RequestError, match=r'encoder gpt2: .*/net cannot be loaded: .*; expected openai-community/gpt2'
    ):
        embed.embed('gpt2', ['a'], tmp_path / 'cache', tmp_path / 'net')
