"""Cells as jobs of Slurm, through dask-jobqueue: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/slurm_cluster.py
Copy this file and say what your cluster calls things. The command runs on a login node (or in a job of its own) as long
as cells do: in tmux or screen. `pip install 'jbench[cluster]'` where both it and the workers run, in one environment;
the work folder is on a disk that all nodes see. PBS, SGE, LSF and HTCondor ask for processors, GPUs, memory and time in
other words: configs/pbs_cluster.py and so on; for Kubernetes there is configs/kubernetes_cluster.py.
"""


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and Slurm's jobs with it."""
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(
        queue='gpu',  # partition
        cores=1,  # so that a worker runs one cell at a time
        processes=1,
        job_cpu=8,  # that Slurm gives the cell
        memory='64GB',  # of the cell: Slurm ends it beyond
        walltime='24:00:00',  # when it is over, the cell saves, and goes on in another job
        job_extra_directives=['--gres=gpu:1'],
        worker_extra_args=['--resources', 'GPU=1,MEMORY=64e9'],  # that it offers to cells: what is asked for above
        death_timeout=60,  # s that a worker looks for its scheduler
        log_directory='slurm-logs',
        # interface='ib0',  # network that nodes and this machine share, where it is not the first one
        # job_script_prologue=['module load cuda', 'source ~/venv/bin/activate'],
    )
    cluster.adapt(minimum=0, maximum=64)  # jobs at once; one that Slurm ends is replaced
    return cluster
