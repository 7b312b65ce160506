"""Cells as jobs of HTCondor, through dask-jobqueue: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/htcondor_cluster.py
Copy this file and say what your cluster calls things; configs/slurm_cluster.py tells what else is needed. HTCondor has
no queues and no time limit of its own; it wants to know how much disk a job takes. The work folder is on a disk that
all its machines see. The job script is tested; no HTCondor was at hand.
"""


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and its jobs with it."""
    from dask_jobqueue import HTCondorCluster

    cluster = HTCondorCluster(
        cores=1,  # so that a worker runs one cell at a time
        processes=1,
        memory='64GB',
        disk='10GB',
        job_extra_directives={'RequestCpus': '8', 'request_gpus': '1'},  # the first in place of `cores`
        worker_extra_args=['--resources', 'GPU=1,MEMORY=64e9'],
        death_timeout=60,  # s that a worker looks for its scheduler
        log_directory='htcondor-logs',
    )
    cluster.adapt(minimum=0, maximum=64)  # jobs at once; one that ends is replaced
    return cluster
