"""Folders in object stores (`s3://`, `gs://`, `az://`): a copy of what a run needs lies on this machine."""
