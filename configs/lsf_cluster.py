"""Cells as jobs of LSF, through dask-jobqueue: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/lsf_cluster.py
Copy this file and say what your cluster calls things; configs/slurm_cluster.py tells what else is needed. The job
script is tested; no LSF was at hand.
"""


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and its jobs with it."""
    from dask_jobqueue import LSFCluster

    cluster = LSFCluster(
        queue='gpu',
        cores=1,  # so that a worker runs one cell at a time
        processes=1,
        memory='64GB',  # that Dask believes the worker has; what LSF gives is in the next two lines
        ncpus=8,
        mem=64 * 10**9,  # bytes
        walltime='24:00',  # hours and minutes: LSF reads no seconds
        job_extra_directives=['-gpu "num=1"'],
        # at the lifetime, before that is over, the cell saves, and moves
        worker_extra_args=['--resources', 'GPU=1,MEMORY=64e9', '--lifetime', '1430m'],
        death_timeout=60,  # s that a worker looks for its scheduler
        log_directory='lsf-logs',
        use_stdin=True,  # bsub < script
        # project='mine',
    )
    cluster.adapt(minimum=0, maximum=64)  # jobs at once; one that ends is replaced
    return cluster
