"""Cells as jobs of PBS Pro or OpenPBS, through dask-jobqueue: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/pbs_cluster.py
Copy this file and say what your cluster calls things; configs/slurm_cluster.py tells what else is needed. The words of
`resource_spec` are those of PBS Pro; Torque has 'nodes=1:ppn=8:gpus=1,mem=64gb'. The job script
is tested; no PBS was at hand.
"""


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and its jobs with it."""
    from dask_jobqueue import PBSCluster

    cluster = PBSCluster(
        queue='gpu',
        cores=1,  # so that a worker runs one cell at a time
        processes=1,
        memory='64GB',  # that Dask believes the worker has; what PBS gives is in the next line
        resource_spec='select=1:ncpus=8:ngpus=1:mem=64gb',
        walltime='24:00:00',
        # at the lifetime, before that is over, the cell saves, and moves
        worker_extra_args=['--resources', 'GPU=1,MEMORY=64e9', '--lifetime', '1430m'],
        death_timeout=60,  # s that a worker looks for its scheduler
        log_directory='pbs-logs',
        # account='mine', job_extra_directives=['-l place=excl'],
    )
    cluster.adapt(minimum=0, maximum=64)  # jobs at once; one that ends is replaced
    return cluster
