"""Cells as pods of Kubernetes, through dask-kubernetes: as many workers as there is work for, one GPU each.

Command: python -m jbench.run --task=eeg-core-1.0 --model=all --cluster=configs/kubernetes_cluster.py --workdir=/mnt/w
Copy this file and put your own image, volume and sizes. The image has jbench with the extra cluster, and no entry point
of its own; the volume can be mounted by many pods at once (ReadWriteMany) and holds the work folder and the recordings.
The command runs in a pod that mounts it at the same path, has dask-kubernetes (`pip install dask-kubernetes`) and may
make a DaskCluster; the operator of dask-kubernetes runs in Kubernetes. What is asked of Kubernetes is checked by its
schemas in tests; none was at hand to run it.
"""

IMAGE = 'ghcr.io/me/jbench:1'
CLAIM, FOLDER = 'bench', '/mnt'  # a PersistentVolumeClaim, and where pods see it
RESOURCES = f'GPU=1,MEMORY={64 << 30}'  # that a worker offers to cells: what the next line asks for
WORKER = {'limits': {'nvidia.com/gpu': '1'}, 'requests': {'cpu': '8', 'memory': '64Gi'}}
SCHEDULER = {
    'requests': {'cpu': '1', 'memory': '2Gi'}
}  # and no GPU, which make_cluster_spec(resources=...) gives it too


def spec() -> dict:
    """The DaskCluster: that of dask-kubernetes, with resources for each part, and the volume."""
    from dask_kubernetes.operator import make_cluster_spec

    made = make_cluster_spec(
        name='jbench',
        image=IMAGE,
        n_workers=0,
        env={'NPROC': '8'},  # threads of jax: as many as a worker's cpus
        worker_command=['dask', 'worker', '--nthreads', '1', '--resources', RESOURCES],  # one cell at a time
    )
    scheduler, worker = (made['spec'][part]['spec'] for part in ('scheduler', 'worker'))
    scheduler['containers'][0]['resources'] = SCHEDULER
    worker['containers'][0] |= {'resources': WORKER, 'volumeMounts': [{'name': 'bench', 'mountPath': FOLDER}]}
    worker['volumes'] = [{'name': 'bench', 'persistentVolumeClaim': {'claimName': CLAIM}}]
    worker['terminationGracePeriodSeconds'] = 120  # that a cell has to save
    return made


def get() -> object:
    """A cluster of Dask; the command closes it when it ends, and its pods with it."""
    from dask_kubernetes.operator import KubeCluster

    cluster = KubeCluster(custom_cluster_spec=spec())
    cluster.adapt(minimum=0, maximum=64)  # pods at once
    return cluster
