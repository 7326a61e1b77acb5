"""An app's own cluster: writes its stack folder, brings it up as `clusterctl up` does, ends it as `down` does.

Loaded on use.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.names import USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory, read_inventory
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_plan import plan_stack, refuse_problems
from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.engine.whereabouts import whereabouts_of_folder
from clusterctl.functions.cluster_text import AppCluster, by_arguments, cluster_text, link_problem, substitutes
from clusterctl.functions.kept_cluster import folder_of, inventory_file, known_here, text_of
from clusterctl.functions.needs import HINT, ClusterNeeds
from clusterctl.home import Home, home_directory
from clusterctl.lifecycle.down import DownRequest, take_down
from clusterctl.lifecycle.new_stack import write_stack_files
from clusterctl.lifecycle.up import bring_up
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.output import Output
from clusterctl.status.cloud_answers import asked_instances
from clusterctl.status.cluster_clients import ClusterClients

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

VOLUMES_FILE = "volumes.json"
AGREED_BY = "app.run(yes=True), or CLUSTERCTL_YES=1,"


def stack_folder(cluster: AppCluster, needs: ClusterNeeds) -> Path:
    """The folder with the app's cluster.yaml, which is written anew if the arguments have changed.

    Raises ConfigError with all that `clusterctl plan` would refuse, named by the arguments; then nothing is written.
    """
    home = home_directory(os.environ)
    folder, text = folder_of(cluster, home), cluster_text(cluster, needs)
    if text_of(folder / CLUSTER_FILE) == text:
        return folder
    _refuse_renamed_volumes(cluster, needs, home=home)
    _refuse_unfit(cluster, needs, text, home=home)
    write_stack_files(folder, cluster.name, text)
    names = {volume.path: volume.name for volume in needs.volumes}
    put_in_place(folder / VOLUMES_FILE, json.dumps(names, indent=1) + "\n", mode=0o644, keeps_owner=True)
    return folder


def brought_up(cluster: AppCluster, needs: ClusterNeeds, *, is_agreed: bool) -> Inventory:
    """Brings the app's cluster up as `clusterctl up` does, and returns its inventory. Raises ClusterctlError."""
    home = home_directory(os.environ)
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("only a program's main thread can bring up a cluster: make the first call there", hint=HINT)
    if is_agreed and not cluster.is_rehearsal:
        refuse_without_caps(needs)
    folder = stack_folder(cluster, needs)
    output = stderr_output()
    for line in substitutes(needs):
        output.note(f"{cluster.name}: {line}")
    if _is_over(cluster, home=home):
        end(cluster)
    request = UpRequest(
        stack_dir=folder,
        stack_name=USUAL_STACK_NAME,
        rehearse=cluster.is_rehearsal,
        nodes=None,
        is_agreed=is_agreed,
        ready_timeout_s=None,
        agreed_by=AGREED_BY,
    )
    bring_up(request, output, os.environ)
    return read_inventory(inventory_file(cluster, home))


def end(cluster: AppCluster) -> None:
    """Takes the app's cluster down as `clusterctl down` does; that also says what stays and goes on billing.

    Raises ClusterctlError.
    """
    home = home_directory(os.environ)
    where = whereabouts_of_folder(
        folder_of(cluster, home), stack_name=USUAL_STACK_NAME, rehearse=cluster.is_rehearsal, home=home
    )
    take_down(DownRequest(where=where, is_all=False, is_agreed=True), stderr_output(), home, os.environ)


def refuse_without_caps(needs: ClusterNeeds) -> None:
    """Raises UsageError if nothing limits the price that a program agrees to, or how long it is paid."""
    missing = [] if needs.max_price_per_hour is not None else ["max_price_per_hour="]
    if needs.max_run_time_hours is None and needs.budget_usd is None:
        missing.append("max_run_time_hours= or budget_usd=")
    if missing:
        message = f"a program can agree to a price only within caps, and {' and '.join(missing)} is missing"
        raise UsageError(f"{message}; nothing was started", hint=HINT)


def stderr_output() -> Output:
    """An output for `up` and `down` that writes to `sys.stderr`, even a notebook's, and drops stdout."""
    is_terminal = sys.stderr.isatty()
    return Output(
        stdout=io.BytesIO(),
        stderr=_Stderr(),
        stderr_is_terminal=is_terminal,
        is_plain=os.environ.get("TERM", "") in ("", "dumb"),
    )


class _Stderr(io.BytesIO):
    """Bytes for `sys.stderr`, whatever a program or a notebook has put there."""

    def write(self, content: Buffer, /) -> int:
        """Writes the bytes at once, as text."""
        text = bytes(content).decode("utf-8", "replace")
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding))
        sys.stderr.flush()
        return len(bytes(content))


def _is_over(cluster: AppCluster, *, home: Home) -> bool:
    """Whether this computer knows the app's cluster, but its deadline or idle rule has ended its machines.

    Then what is left of it has to be taken down before a new run begins.
    """
    known = known_here(cluster, home)
    if known is None:
        return False
    if datetime.fromisoformat(known.deadline) <= datetime.now(UTC):
        return True
    clients = ClusterClients(known, home=home, environ=os.environ)
    instances, _ = asked_instances(clients, known.cluster_id, home=home)
    return bool(known.nodes) and instances is not None and not any(row.is_alive for row in instances)


def _refuse_renamed_volumes(cluster: AppCluster, needs: ClusterNeeds, *, home: Home) -> None:
    """Raises UsageError if the cluster already has the file system of another volume at one of these paths."""
    folder = folder_of(cluster, home)
    try:
        before: Mapping[str, str] = json.loads(text_of(folder / VOLUMES_FILE) or "{}")
    except ValueError:
        return
    if not inventory_file(cluster, home).is_file():
        return
    for volume in needs.volumes:
        held = before.get(volume.path, volume.name)
        if held != volume.name:
            raise UsageError(
                f"volumes[{volume.path!r}] is {volume.name}, and the cluster has {held} there: use another path",
                hint=f"clusterctl down {shlex.quote(str(folder))} --all",
            )


def _refuse_unfit(cluster: AppCluster, needs: ClusterNeeds, text: str, *, home: Home) -> None:
    """Raises ConfigError with all problems of such a cluster, named by the arguments.

    Raises UsageError if neither GPUs nor an instance type are given.
    """
    if needs.gpu is None and needs.instance_type is None:
        raise UsageError("gpu= is missing (or instance_type=, or cluster= for one that exists)", hint=HINT)
    catalog = load_catalog(home.prices_file)
    with tempfile.TemporaryDirectory(prefix="clusterctl-app-") as place:
        write_stack_files(Path(place), cluster.name, text)
        stack = Stack(
            directory=Path(place),
            project=cluster.name,
            name=USUAL_STACK_NAME,
            is_rehearsal_project=cluster.is_rehearsal,
        )
        try:
            now = datetime.now(UTC).replace(microsecond=0)
            planned = plan_stack(stack, catalog, home=home, now=now, rehearse=cluster.is_rehearsal)
            refuse_problems(planned.plan, stack, overrides=planned.overrides)
        except ConfigError as e:
            raise by_arguments(e) from None  # a traceback would show the file of a folder that is gone
    problem = None if needs.link is None else link_problem(needs.link, planned.instance_type)
    if problem is not None:
        raise by_arguments(ConfigError(problem))
