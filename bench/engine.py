"""What a cluster without machines costs the engine: by Pulumi alone, by clusterctl, and as many bare resources."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from bench.timing import Timing, run
from bench.workspace import BIN, CLUSTERCTL, ROOT, Workspace, workspace

SIZES = (4, 64, 256)
CHOICE = "BENCH_ENGINE"
"""`BENCH_ENGINE="4 64" scripts/bench engine` measures only these sizes: Pulumi by itself takes minutes for 256."""
PULUMI = str(BIN / "pulumi")
BARE = """\
import pulumi_aws as aws
for number in range({count}):
    aws.ec2.PlacementGroup(f"bare-{{number}}", name=f"bare-{{number}}", strategy="cluster")
"""


def table() -> list[tuple[str, ...]]:
    """Rows: nodes, resources; the cluster by Pulumi alone and by clusterctl, as many bare resources; memory."""
    wanted = os.environ.get(CHOICE, "").split()
    return [_row(nodes) for nodes in SIZES if not wanted or str(nodes) in wanted]


def _row(nodes: int) -> tuple[str, ...]:
    with workspace() as space:
        stack = space.stack(f"scale{nodes}", nodes=nodes, machines="none")
        preview, up = _preview_and_up(space, stack)
        count = _resources(space, stack)
        down = _clusterctl(space, "down", stack, "--yes")
        clusterctl_up = _clusterctl(space, "up", stack)
        bare = _bare_stack(space, count)
        _, bare_up = _preview_and_up(space, bare)
    return (
        str(nodes),
        str(count),
        f"{preview.wall_s:.1f} s",
        f"{up.wall_s:.1f} s",
        f"{clusterctl_up.wall_s:.1f} s",
        f"{down.wall_s:.1f} s",
        f"{bare_up.wall_s:.1f} s",
        f"{clusterctl_up.wall_s / bare_up.wall_s:.2f}",
        f"{up.peak_mib:.0f} MiB",
        f"{clusterctl_up.peak_mib:.0f} MiB",
    )


def _clusterctl(space: Workspace, verb: str, stack: Path, *options: str) -> Timing:
    return run([CLUSTERCTL, verb, str(stack), *options], env=space.env, cwd=str(stack), timeout_s=600)


def _bare_stack(space: Workspace, count: int) -> Path:
    """A stack of `count` resources that depend on nothing."""
    bare = space.folder / "bare"
    bare.mkdir()
    (bare / "__main__.py").write_text(BARE.format(count=count))
    (bare / "Pulumi.yaml").write_text(
        "name: bare\nruntime: python\nplugins:\n  providers:\n"
        f"    - name: aws\n      path: {ROOT}/rehearsal/plugin\nconfig:\n  aws:region: us-west-2\n"
    )
    (bare / "rehearsal.yaml").write_text("machines: none\n")
    return bare


def _preview_and_up(space: Workspace, stack: Path) -> tuple[Timing, Timing]:
    folder = str(stack)
    subprocess.run(
        [PULUMI, "stack", "init", "dev", "--non-interactive"],
        env=space.env,
        cwd=folder,
        check=True,
        timeout=60,
        capture_output=True,
    )
    preview = run([PULUMI, "preview", "--non-interactive"], env=space.env, cwd=folder, timeout_s=300)
    up = run(
        [PULUMI, "up", "--yes", "--skip-preview", "--non-interactive", "--parallel", "64"],
        env=space.env,
        cwd=folder,
        timeout_s=600,
    )
    return preview, up


def _resources(space: Workspace, stack: Path) -> int:
    """How many resources the stack has, without the stack itself and providers."""
    exported = subprocess.run(
        [PULUMI, "stack", "export"], env=space.env, cwd=str(stack), check=True, timeout=60, capture_output=True
    )
    rows = json.loads(exported.stdout)["deployment"]["resources"]
    return sum(1 for row in rows if not row["type"].startswith(("pulumi:pulumi:Stack", "pulumi:providers:")))
