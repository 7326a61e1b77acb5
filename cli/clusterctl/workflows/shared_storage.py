"""Where a cluster's nodes have the storage that all of them share."""

from __future__ import annotations

from clusterctl_infra.errors import ClusterctlError

from clusterctl.jobs.node_answers import JobNodes
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes

LOOK_S = 30.0
LOOK = (
    "import json, os;"
    "rows = json.load(open('/etc/clusterctl/node.json')).get('mounts') or [];"
    "kinds = ('efs', 'fsx-lustre');"
    "rows = [row for row in rows if row['kind'] in kinds and row['writable']];"
    "found = [row['path'] for row in rows if os.path.ismount(row['path'])];"
    "print(json.dumps(found[:1]))"
)
"""The first file system that is mounted now and takes files."""
MARK = '["'


def shared_storage(nodes: JobNodes) -> str | None:
    """The path, as its lowest slot says; None where the cluster has none. Raises ClusterctlError."""
    first = min(nodes.inventory.nodes, key=lambda node: node.slot)
    command = Command(line=f'python3 -I -c "{LOOK}"', timeout_s=LOOK_S)
    result = run_on_nodes(
        nodes.inventory, (first,), command, keys=nodes.keys, deadlines=nodes.deadlines, pool=nodes.pool
    )[first.slot]
    if not result.is_ok:
        why = result.stderr.decode(errors="replace").strip()[-300:]
        told = why if result.failure is None else result.failure.told_under(first.name)
        raise ClusterctlError(
            f"Node {first.slot} ({first.name}) does not say what it has mounted: {told}", hint="clusterctl status"
        )
    lines = result.stdout.decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else ""
    return last[len(MARK) : -2] if last.startswith(MARK) and last.endswith('"]') else None
