"""Cells as jobs of Grid Engine, through dask-jobqueue: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/sge_cluster.py
Copy this file and say what your cluster calls things; configs/slurm_cluster.py tells what else is needed. What
`resource_spec` and the parallel environment are called is the choice of each site (`qconf -sc`, `qconf -spl`), and
so is whether memory counts for each slot. The job script is tested; no Grid Engine was at hand.
"""


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and its jobs with it."""
    from dask_jobqueue import SGECluster

    cluster = SGECluster(
        queue='gpu.q',
        cores=1,  # so that a worker runs one cell at a time
        processes=1,
        memory='64GB',  # that Dask believes the worker has; what SGE gives is in the next two lines
        resource_spec='gpu=1,mem_free=8G',  # 8 slots of 8 GB; a limit of virtual memory (h_vmem) would end jax on a GPU
        job_extra_directives=['-pe smp 8'],
        walltime='24:00:00',  # then SGE kills without a word: before, at the lifetime, the cell saves, and moves
        worker_extra_args=['--resources', 'GPU=1,MEMORY=64e9', '--lifetime', '1430m'],
        death_timeout=60,  # s that a worker looks for its scheduler
        log_directory='sge-logs',
        # project='mine',
    )
    cluster.adapt(minimum=0, maximum=64)  # jobs at once; one that ends is replaced
    return cluster
