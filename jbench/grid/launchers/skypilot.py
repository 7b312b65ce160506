"""A plan as one file of SkyPilot: a machine runs its share of the cells, one after the other.

As many machines as are wanted are managed jobs of this one file, told apart by RANK and MACHINES; each can be a spot
machine, for what another one has finished is not computed again.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from jbench.grid.launchers.planned import Planned, alone, check_again, check_seen, indented, listed, memory, words

TEXT = """\
# {words}, dealt to the machines. One machine: sky jobs launch THIS_FILE
# Eight: for k in {{0..7}}; do sky jobs launch -y -d -n {name}-$k --env RANK=$k --env MACHINES=8 THIS_FILE; done
name: {name}
resources:
{resources}
{volumes}envs:
  RANK: "0"
  MACHINES: "1"
{setup}run: |
{run}
"""
RUN = """\
status=0
while IFS= read -r line <&3; do
  echo "$line"
  bash -c "exec $line" 3<&-; now=$?
  [ $now = 75 ] && exit 75
  [ $now -gt $status ] && status=$now
done 3< <(commands | sed -n "$((RANK + 1))~${MACHINES}p")
exit $status"""


class Options(NamedTuple):
    """What a plan cannot know of a cloud."""

    accelerator: str = 'L4:1'  # '': none
    memory: str = ''  # as 16G; '': the largest that is expected
    cpus: int = 4
    setup: str = ''  # shell, once on each machine
    image: str = ''  # of Docker; '': SkyPilot's
    volumes: tuple[tuple[str, str], ...] = ()  # a volume of SkyPilot, and the folder that it is mounted at
    spot: bool = True


def text(plan: Planned, options: Options) -> str:
    """The file. Raises: RequestError for folders that the machines would not see."""
    check_again(plan, 'SkyPilot')
    check_seen(plan, [folder for _, folder in options.volumes], 'SkyPilot')
    needed = memory(plan.jobs, options.memory, '+')
    resources = {
        'accelerators': options.accelerator,
        'use_spot': options.spot,
        'cpus': f'{options.cpus}+',
        'memory': needed,
        'image_id': f'docker:{options.image}' if options.image else '',
    }
    volumes = [f'{json.dumps(folder)}: {json.dumps(name)}' for name, folder in options.volumes]
    commands = alone(plan)
    return TEXT.format(
        words=words(plan),
        name=plan.name,
        resources=indented((f'{k}: {json.dumps(v)}' for k, v in resources.items() if v != ''), 2),
        volumes=f'volumes:\n{indented(volumes, 2)}\n' if volumes else '',
        setup=f'setup: |\n{indented(options.setup.splitlines(), 2)}\n' if options.setup else '',
        run=indented([*listed(commands), *RUN.splitlines()], 2),
    )
