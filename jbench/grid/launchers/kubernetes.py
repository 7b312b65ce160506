"""A plan as one Indexed Job of Kubernetes: a pod runs one cell, which its index names.

The pod of a cell that was told to stop (status 75) or whose node went away is replaced and goes on from the checkpoint;
a cell that failed (1, 2) is not tried again; whatever else ends a pod counts, and a few are allowed.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from jbench.grid.launchers.planned import Planned, alone, check_again, check_seen, indented, memory, words
from jbench.spec.errors import RequestError

LARGEST = 1_000_000  # bytes of a ConfigMap; Kubernetes takes 1 MiB with its metadata
GRACE = 120  # s that a cell has to save
TRIES = 3  # pods of one cell that may die of something else, such as memory

TEXT = """\
# {words}. Start: kubectl apply -f THIS_FILE; end: kubectl delete -f THIS_FILE
# Needs Kubernetes 1.29 (backoffLimitPerIndex, podReplacementPolicy).{advice}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
immutable: true
data:
  commands: |
{commands}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: jbench
{queue}spec:
  completionMode: Indexed
  completions: {n}
  parallelism: {at_once}
  backoffLimitPerIndex: {tries}
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - {{type: DisruptionTarget, status: "True"}}
      - action: Ignore
        onExitCodes: {{operator: In, values: [75]}}
      - action: FailIndex
        onExitCodes: {{operator: In, values: [1, 2]}}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: jbench
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: {grace}
      containers:
        - name: cell
          image: {image}
          command: [bash, -c]
          args:
            - |
{script}
          env:
            - {{name: NPROC, value: "{cpus}"}}
{secret}          resources:
            requests: {requests}
            limits: {limits}
          volumeMounts:
            - {{name: plan, mountPath: /plan, readOnly: true}}
{mounts}      volumes:
        - name: plan
          configMap: {{name: {name}}}
{volumes}"""
SCRIPT = (
    'line=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" /plan/commands)',
    '[ "$line" ] || exit 2',
    'eval "exec $line"',
)
IDLE = """
# A cell whose windows nobody has prepared does that while its accelerator waits: `--stage=prepare` of the same request,
# on a machine without any, does it before."""
QUEUE = """\
    kueue.x-k8s.io/queue-name: {queue}
  annotations:
    kueue.x-k8s.io/job-min-parallelism: "1"
"""
SECRET = """\
          envFrom:
            - secretRef: {{name: {secret}}}
"""


class Options(NamedTuple):
    """What a plan cannot know of a cluster."""

    image: str
    accelerator: str = 'nvidia.com/gpu:1'  # resource and how many; '': none
    memory: str = ''  # as 16G; '': the largest that is expected
    cpus: int = 4
    at_once: int = 0  # pods that run at once; 0: as many as there is room for
    setup: str = ''  # shell, before the command
    volumes: tuple[tuple[str, str], ...] = ()  # claim, and the folder that it is mounted at
    secret: str = ''  # whose entries are environment variables, such as the credentials of a store
    queue: str = ''  # of Kueue


def text(plan: Planned, options: Options) -> str:
    """The manifest: the commands, and the Job that runs them.

    Raises: RequestError for folders that pods would not see, and for more commands than a ConfigMap holds.
    """
    check_again(plan, 'Kubernetes')
    check_seen(plan, [folder for _, folder in options.volumes], 'Kubernetes')
    commands = alone(plan)
    size = sum(len(command.encode()) + 1 for command in commands)
    if size > LARGEST:
        raise RequestError(
            f'the plan has {len(commands)} commands of {size} bytes together; a ConfigMap of Kubernetes '
            f'holds {LARGEST}: make several plans, of fewer tasks or models each'
        )
    digest = hashlib.sha256('\n'.join(commands).encode()).hexdigest()[
        :8
    ]  # neither object can be changed: others, another
    script = [*options.setup.splitlines(), *SCRIPT]
    return TEXT.format(
        words=words(plan),
        advice=IDLE if plan.prepare and plan.cells else '',
        name=f'{plan.name}-{digest}',
        commands=indented(commands, 4),
        n=len(commands),
        at_once=min(options.at_once or len(commands), len(commands)),
        script=indented(script, 14),
        tries=TRIES,
        grace=GRACE,
        image=json.dumps(options.image),
        cpus=options.cpus,
        **_parts(plan, options),
    )


def _parts(plan: Planned, options: Options) -> dict[str, str]:
    """What is there only where it is asked for: lines of the manifest, and resources."""
    needed = memory(plan.jobs, options.memory, 'Gi')
    device, _, count = options.accelerator.partition(':')
    mounts, volumes = '', ''
    for k, (claim, folder) in enumerate(options.volumes):
        mounts += f'            - {{name: volume-{k}, mountPath: {json.dumps(folder)}}}\n'
        volumes += f'        - name: volume-{k}\n          persistentVolumeClaim: {{claimName: {json.dumps(claim)}}}\n'
    return {
        'queue': QUEUE.format(queue=json.dumps(options.queue)) if options.queue else '',
        'secret': SECRET.format(secret=json.dumps(options.secret)) if options.secret else '',
        'requests': json.dumps({'cpu': str(options.cpus), **({'memory': needed} if needed else {})}),
        'limits': json.dumps({device: count or '1'} if device else {}),
        'mounts': mounts,
        'volumes': volumes,
    }
