"""Where recorded sets come from: folder, licence, citation, files with their SHA-256, and what may lie there instead.

Hashes are those of the files as collected; a file as published upstream, which some readers take too, has none here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jbench.files import sha256_file
from jbench.spec.errors import RequestError


class Collection(NamedTuple):
    """One published collection."""

    folder: str  # under the data folder
    origin: str  # where its files come from
    licence: str
    citation: str
    sha256: dict[str, str]  # file -> hash


SOURCES: dict[str, Collection] = {
    'Cowley2023': Collection(
        folder='CowleyV4',
        origin='github.com/cowleygroup/V4_compact_models, data_V4_responses/',
        licence='GPL-3.0 (the repository; none for the data alone)',
        citation='Cowley, Stan, Pillow, Smith 2023, Compact deep neural network models of visual cortex, bioRxiv',
        sha256={
            'images_190923.zip': 'e99a4df1c7476bdc4d565ff4408bc421976ecc3a22c41af6bfd0cfbddb508c0c',
            'images_201025.zip': '3abb63679107665eab7220bdeaf7863832a1df943bf3d7792501f5082a55b2e8',
            'images_210225.zip': '79bfb1066949a7f7bbd3c632ab420c2230b966b80cade76593d8745aea49b7f6',
            'images_210325.zip': '992774eca3508a2ad01accb1a31f5f3e3d90248c49f4eec314f2a915a263e454',
            'responses_avg_190923.npz': 'b2d4201c13a6d39e8c57a2e702333be3834f017f45e2f3ea8c4d8e894734f291',
            'responses_avg_201025.npz': '90316e74c743e64691febe66b07582fb02f5504a9fab11ce83f18256913fefc1',
            'responses_avg_210225.npz': 'b113af4bfe12a5650ae8c424797ce530ac863ab054bd1468677dd84777d4fcca',
            'responses_raw_201016.npz': '02472569a46baad74d53a07c73d75603f4b86a2bd5e956b241e424b7d253df2e',
            'responses_raw_210325.npz': 'bb8c1c3259568d9baae389b41f0df802dfbafbc02240c177320f2ffcc030b09b',
        },
    ),
    'Kriegeskorte92': Collection(
        folder='Kriegeskorte92',
        origin='github.com/rsagroup/rsatoolbox, demos/92imageData/*.mat, gathered in one npz',
        licence='MIT (the repository; none for the data and images alone)',
        citation='Kriegeskorte et al. 2008, Matching categorical object representations in inferior temporal cortex of '
        'man and monkey, Neuron; behaviour: Mur et al. 2013, Frontiers in Psychology',
        sha256={'kriegeskorte92.npz': 'd947e8ee3ab09719cd7e118891f45f768f214843e41322153ac4da95969efda6'},
    ),
    'Geirhos2021': Collection(
        folder='Geirhos2021',
        origin='github.com/bethgelab/model-vs-human, raw-data/*/*.csv, gathered in two parquet files',
        licence='code MIT; cue-conflict, edge, silhouette CC-BY-4.0; sketch MIT; the others as ImageNet',
        citation='Geirhos et al. 2021, Partial success in closing the gap between human and machine vision, NeurIPS',
        sha256={
            'human_trials.parquet': 'bc8e84eca1ec608575af084f8e59226d6da64e42f48066b0b212b39baf652194',
            'model_trials.parquet': 'a8b57e08f280cc6d061937242e049bb8b766db2cf71be09f692f93d6ce0b9adb',
        },
    ),
    'Marques2020': Collection(
        folder='Marques2020',
        origin='github.com/brain-score/vision, brainscore_vision/data/marques2020/data_packaging/*.py, numbers alone',
        licence='MIT (the repository)',
        citation='Marques, Schrimpf, DiCarlo 2021, Multi-scale hierarchical neural network models that bridge from '
        'single neurons in the primate primary visual cortex to object recognition behavior, bioRxiv',
        sha256={
            'property_histograms.json': '6951d8295506321fdecf96bf35359df1bd15c9f622362d5be4aae89e78516c5c',
            'assy_shapley_Ringach2002.nc': '92e9c4639a46b796108103ea2cef2f3c21e5927b93ab2f19b32d23c204cacb00',
            'assy_movshon_FreemanZiemba2013_V1_properties.nc': (
                '5c64bab7b144812b3c070a7c710e3edb8c4bbe33eb682343ee20b49b64967d4c'
            ),
        },
    ),
    'ZhangDesimone7': Collection(
        folder='ZhangDesimone7',
        origin='github.com/emeyers/NeuroDecodeR, inst/extdata/Zhang_Desimone_7object_raster_data_rda/*.rda, in two npz',
        licence='GPL-3 (the package; none for the data alone)',
        citation='Zhang et al. 2011, Object decoding with attention in inferior temporal cortex, PNAS',
        sha256={
            'counts_50ms.npz': 'bb0e91df1f6712cea2a6c511ab5aafedfdaee94525496fb476682041b8c13f95',
            'raster_1ms_packed.npz': '5aee474e2d4f39b74955d7616ab01c7b87ef47e1c3de92d8c2ecfedd17341127',
        },
    ),
    'Haxby2001': Collection(
        folder='Haxby2001',
        origin='github.com/PyMVPA/PyMVPA, mvpa2/data/{bold,mask}.nii.gz and attributes_literal.txt, in one npz',
        licence='CC BY-SA 3.0 (as PyMVPA states)',
        citation='Haxby et al. 2001, Distributed and overlapping representations of faces and objects, Science',
        sha256={'sub001_slice_vt_mask530.npz': '67fff45b61fc6c1e0de72345b29cafb6c61b6704f0122d4f3d72008639eba0b0'},
    ),
    'Bonner81': Collection(
        folder='Bonner81',
        origin='github.com/QuantumMatter/cracking-the-code-dw1, in one npz',
        licence='none stated: for tests alone',
        citation='presumably Bonner, Epstein 2021, Object representations in the human brain reflect the co-occurrence '
        'statistics of vision and language, Nature Communications',
        sha256={'bonner81_roi.npz': '6c9d87fbc145dddbd48ca369cc087a1e40d1e211d9ca39c4eb4598fe93e5dae2'},
    ),
    'THINGS': Collection(
        folder='THINGS',
        origin='github.com/ViCCo-Group/semantic_features_gpt_3, data/things/, in one npz',
        licence='none stated in that repository',
        citation='Hebart et al. 2020, Revealing the multidimensional mental representations of natural objects, Nature '
        'Human Behaviour; Hebart et al. 2023, THINGS-data, eLife',
        sha256={'spose_embeddings.npz': 'e4df4fa7f509a6313d83f3fa5ed46331e2df3afabd460e1d48a086a6dc35ad67'},
    ),
    'KarITneuron': Collection(
        folder='KarITneuron',
        origin='github.com/kohitij-kar/prediction_demo, data/sample_neuron.h5, in one npz',
        licence='none stated',
        citation='Kar, prediction_demo (github.com/kohitij-kar/prediction_demo)',
        sha256={'sample_it_neuron.npz': '2c9bf4e985e24ca45ff309c9e52e85e63a684f7182f68a085a00dfc21fab4a1b'},
    ),
    'BrainScoreTestAssemblies': Collection(
        folder='BrainScoreTestAssemblies',
        origin='github.com/brain-score/vision, brainscore_vision/benchmarks/rajalingham2018/test_resources/ and '
        'tests/test_model_helpers/activations/',
        licence='MIT (the repository)',
        citation='Schrimpf et al. 2020, Integrative benchmarking to advance neurally mechanistic models of human '
        'intelligence, Neuron',
        sha256={
            'alexnet-probabilities.nc': 'eff812ac9c66d8b4ec6f9f80fd3179940efd7b2f3a8364469fd29cba48d0556c',
            'resnet18-probabilities.nc': 'd7095c2edf9fc2fdccafd52d23255e3fd3e00c995e8eea4dae319a538965ba0d',
            'resnet34-probabilities.nc': '18f95cfb3780908f62f711a281d12f6a3849b209bc573679d85eac313374e69b',
            'alexnet-rgb-None.nc': 'da60b1987c7cecfbfe53e1cba645c3568fcfac83979179549b911adf9e9c6135',
            'alexnet-rgb-1000.nc': 'd859c0e4679f50eb7c7d9fb16260dc6131c3a7dacb0c00e590e4006e2bad7cb4',
        },
    ),
    'GeneratedSentences': Collection(
        folder='',
        origin='generated from a seed (jbench/alignment/data/sentences.py)',
        licence='Apache-2.0',
        citation='none: made for tests of sets whose stimuli are texts',
        sha256={},
    ),
}


def find(name: str, data_dir: str | Path, file: str, *upstream: str) -> Path:
    """Where a file of a collection lies.

    Args:
      name: of SOURCES.
      data_dir: the folder that holds the collections.
      file: its name there as collected; its SHA-256 is checked.
      upstream: paths, from the collection's folder, at which the file or folder as published is taken instead.

    Raises: RequestError where none of them is there, or the file is another one.
    """
    source = SOURCES[name]
    folder = Path(data_dir) / source.folder
    path = next((folder / f for f in (file, *upstream) if (folder / f).exists()), None)
    if path is None:
        raise missing(name, data_dir, [file, *upstream])
    expected = source.sha256.get(path.name)
    if expected and (found := sha256_file(path)) != expected:
        remedy = f'it is damaged or of another version: fetch it again from {source.origin}'
        raise RequestError(f'{path}: sha256 {found[:12]}..., expected {expected[:12]}...; {remedy}')
    return path


def missing(name: str, data_dir: str | Path, files: list[str], why: str = '') -> RequestError:
    """The one error of data that are not there: which files, where, from where, what to do."""
    source = SOURCES[name]
    wanted = ' or '.join(files)
    remedy = why or f'get it from {source.origin}, put it there, or name another folder with --data_dir'
    return RequestError(f'data missing: {name} needs {wanted} under {Path(data_dir) / source.folder}; {remedy}')
