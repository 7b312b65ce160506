"""TFDS metadata of a prepared set, so that `tfds.builder_from_directory(folder).as_data_source('all')` reads it.

'all' is TFDS's word for every split together; no split may have that name.
"""

from __future__ import annotations

import os
from pathlib import Path

SPLIT = 'windows'


def write_metadata(folder: Path, name: str, shard_lengths: list[int], n_bytes: int) -> None:
    """Write `features.json` and `dataset_info.json` beside the shards of the one split.

    A record holds `x` (int16 little-endian bytes of a [C, T] window), `shape`, `scale` (float32 [C]; signal = x *
    scale), `id` (within its recording), and as text `subject`, `session`, `run`, `target` (JSON).
    """
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    import numpy as np
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            'x': tfds.features.Scalar(np.bytes_),
            'shape': tfds.features.Tensor(shape=(2,), dtype=np.int64),
            'scale': tfds.features.Tensor(shape=(None,), dtype=np.float32),
            'id': tfds.features.Scalar(np.int64),
            **{c: tfds.features.Text() for c in ('subject', 'session', 'run', 'target')},
        }
    )
    template = tfds.core.ShardedFileTemplate(
        data_dir=folder,
        template='{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}',
        dataset_name=name,
        split=SPLIT,
        filetype_suffix='array_record',
    )
    split = tfds.core.SplitInfo(name=SPLIT, shard_lengths=shard_lengths, num_bytes=n_bytes, filename_template=template)
    tfds.folder_dataset.write_metadata(
        data_dir=folder,
        features=features,
        split_infos=[split],
        filename_template=None,
        check_data=False,
        description='Windows of brain recordings, prepared by jbench. Decode x as int16, reshape, multiply by scale.',
    )
