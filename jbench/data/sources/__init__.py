"""One module per family of datasets. A module gives three things, and its file name is its registration:

- `DATASETS`: a tuple of `jbench.spec.dataset.Dataset`;
- `recordings(dataset, root) -> list[RecordingRef]`: what lies under `<data_dir>/<dataset>`, from names alone, fast;
- `read(ref) -> Recording`: one recording in volts with its events at their true onsets.
"""
