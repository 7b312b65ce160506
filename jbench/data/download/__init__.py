"""Files from the hosts of datasets."""
