"""Which cluster a command means: the inventories on this computer, and the one that was asked for."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterctl_infra.errors import ClusterctlError, NothingMatched
from clusterctl_infra.names import REHEARSAL_SUFFIX, clusters_called, plain_name
from clusterctl_infra.nearest import did_you_mean
from clusterctl_infra.outputs import Inventory, InventoryUnreadable, read_inventory

from clusterctl.engine.stacks_near import stacks_near
from clusterctl.home import Home
from clusterctl.system.processes import boot_id, is_alive

VARIABLE = "CLUSTERCTL_CLUSTER"
_STAND_IN = re.compile(r"^\s*-\s*\{?\s*name:\s*[\"']?aws[\"']?\s*(?:,|\}|$)", re.MULTILINE)
"""The provider in a Pulumi.yaml that makes its stack one that is always rehearsed; a YAML parser takes long to load."""
_STACK_DIR = re.compile(r'"stack_dir": *("(?:[^"\\]|\\.)*")')


def inventory_here(home: Home, cluster: str) -> Inventory | None:
    """The inventory that this computer has under the cluster's name; None without a readable one."""
    try:
        return read_inventory(home.inventory_file(cluster))
    except (ClusterctlError, OSError):
        return None


def clusters_of_stack(home: Home, *, folder: Path, stack_name: str, is_rehearsal: bool) -> tuple[Inventory, ...]:
    """The clusters that were last run from this stack, whatever names they have; sorted by name.

    A rehearsal of the stack, or another stack of the folder, is another cluster.
    """
    wanted = (str(folder), stack_name, is_rehearsal)
    known = (inventory_here(home, name) for name in home.cluster_names)
    return tuple(
        each for each in known if each is not None and (each.stack_dir, each.stack_name, each.rehearsal) == wanted
    )


def find_cluster(home: Home, *, name: str | None, environ: Mapping[str, str]) -> Inventory:
    """The inventory of `name`, else of `$CLUSTERCTL_CLUSTER`, else of the only cluster there is.

    Raises NothingMatched, and InventoryUnreadable naming the file.
    """
    known = home.cluster_names
    wanted, source = (name, "--cluster") if name else (environ.get(VARIABLE), f"${VARIABLE}")
    if half_made := _half_made(home, wanted, known):
        run = _run_of(home, half_made)
        stack = run.get("stack") or "STACK"
        if (pid := _running_pid(run)) is not None:
            raise NothingMatched(
                f"{half_made}: clusterctl {run.get('verb')} is changing it now (pid {pid}), and nothing is known of "
                "its nodes here yet: ask again in some seconds"
            )
        if run.get("verb") == "down":
            raise NothingMatched(
                f"{half_made}: `down` was interrupted; what is left of it is still billing",
                hint=f"clusterctl down {stack}",
            )
        raise NothingMatched(
            f"{half_made}: `up` was interrupted, so nothing is known of its nodes here. Anything it created is still "
            f"billing. The same `up` continues it, and `clusterctl down {stack}` ends it",
            hint=f"clusterctl up {stack}",
        )
    cluster = matching_cluster(wanted, known, source=source) if wanted else _only(known, home)
    path = home.inventory_file(cluster)
    try:
        return read_inventory(path)
    except InventoryUnreadable as e:
        # `nodes --stack` writes the file anew once it is gone.
        hint = f"rm {shlex.quote(str(path))} && {_read_again(cluster, path)}"
        raise InventoryUnreadable(e.message, hint=hint) from e
    except FileNotFoundError as e:
        raise NothingMatched(f"cluster {cluster} was removed just now: {path} no longer exists") from e
    except OSError as e:
        raise InventoryUnreadable(f"{path}: cannot be read ({e.strerror})") from e


def matching_cluster(wanted: str, known: Sequence[str], *, source: str) -> str:
    """The known cluster called `wanted`; if no `train` is known, it means `train@rehearsal` or `train@hosts`.

    Raises NothingMatched.
    """
    for candidate in clusters_called(wanted):
        if candidate in known:
            return candidate
    if not known:
        raise NothingMatched(f"{source} {wanted}: no cluster is known on this computer", hint=make_one(Path()))
    names = [*known, *map(plain_name, known)]
    raise NothingMatched(
        f"{source} {wanted}: no such cluster{did_you_mean(wanted, names)}; known here: {', '.join(known)}",
        hint=f"export {VARIABLE}={known[0]}" if source.startswith("$") else f"clusterctl status --cluster {known[0]}",
    )


def make_one(folder: Path) -> str:
    """`clusterctl up stacks/rehearsal`: the command for a stack near the folder that costs nothing.

    If all stacks there are for AWS, a plan is offered, since an `up` would cost money. If there is none, the text says
    what a stack is.
    """
    near = stacks_near(folder)
    if not near:
        return "clusterctl up STACK  (STACK: a folder with Pulumi.yaml and cluster.yaml)"
    rehearsed = next((stack for stack in near if _is_always_rehearsed(stack)), None)
    if rehearsed is None:
        return f"clusterctl plan {shlex.quote(str(near[0]))}"
    return f"clusterctl up {shlex.quote(str(rehearsed))}"


def _is_always_rehearsed(stack: Path) -> bool:
    try:
        return _STAND_IN.search((stack / "Pulumi.yaml").read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _read_again(cluster: str, inventory_file: Path) -> str:
    """`clusterctl nodes --stack stacks/train`: the folder as the broken file still has it, if it does."""
    rehearse = " --rehearse" if cluster.endswith(REHEARSAL_SUFFIX) else ""
    with contextlib.suppress(OSError, ValueError):
        found = _STACK_DIR.search(inventory_file.read_text(encoding="utf-8"))
        if found is not None:
            return f"clusterctl nodes --stack {shlex.quote(json.loads(found[1]))}{rehearse}"
    return f"clusterctl nodes --stack STACK{rehearse}  (STACK: the folder)"


def _half_made(home: Home, wanted: str | None, known: Sequence[str]) -> str | None:
    """The cluster that is wanted, if nothing but its run is known here; None if an inventory matches."""
    candidates = (wanted, wanted + REHEARSAL_SUFFIX) if wanted else ()
    if any(candidate in known for candidate in candidates) or (known and not wanted):
        return None
    try:
        begun = sorted(path.stem for path in home.runs_dir.glob("*.json"))
    except OSError:
        return None
    return next((cluster for cluster in begun if not wanted or cluster in candidates), None)


def _run_of(home: Home, cluster: str) -> Mapping[str, Any]:
    """The content of the run's file, unchecked: engine.run_file checks it, but takes longer to load."""
    try:
        record = json.loads(home.run_file(cluster).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _running_pid(run: Mapping[str, Any]) -> int | None:
    """The pid of the run while it is alive; None also if `run` is not what a run's file has."""
    pid, ticks = run.get("cli_pid"), run.get("cli_ticks")
    if run.get("boot") != boot_id() or not isinstance(pid, int) or not isinstance(ticks, int):
        return None
    return pid if is_alive(pid, ticks) else None


def _only(known: Sequence[str], home: Home) -> str:
    if not known:
        raise NothingMatched(f"no cluster on this computer ({home.inventory_dir} has none)", hint=make_one(Path()))
    if len(known) > 1:
        raise NothingMatched(
            f"{len(known)} clusters here: {', '.join(known)}; name one with --cluster, or choose one for this shell",
            hint=f"export {VARIABLE}={known[0]}",
        )
    return known[0]
