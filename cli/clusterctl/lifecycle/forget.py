"""`clusterctl forget`: drops what this computer knows of a cluster that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl_infra.errors import ClusterctlError, StillBills, UsageError
from clusterctl_infra.outputs import Inventory

from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.look import Look
from clusterctl.engine.region import region_access
from clusterctl.engine.run_file import only_run
from clusterctl.home import Home
from clusterctl.lifecycle.last_look import bill_of, billing, forget_cluster, look_for
from clusterctl.output import Output
from clusterctl.ssh.installed_config import refresh
from clusterctl.text.next_commands import down_again, reap_cluster
from clusterctl.text.quantities import count


@dataclass(frozen=True, kw_only=True)
class ForgetRequest:
    """What a person asked for."""

    inventory: Inventory
    is_agreed: bool
    """`--yes`."""


def forget(request: ForgetRequest, output: Output, home: Home, environ: Mapping[str, str]) -> None:
    """Forgets the cluster where AWS says that nothing of it bills; where AWS does not say, after the person agreed.

    Raises StillBills when something of it bills, UsageError when nobody agreed, EngineError while a run changes it.
    """
    known = request.inventory
    with only_run(home, known.cluster, verb="forget", note=output.note):
        doubt = why_in_doubt(known, home, environ)
        if doubt is not None:
            _ask(request, output, doubt)
        forget_cluster(home, known.cluster, cluster_id=known.cluster_id)
        home.run_file(known.cluster).unlink(missing_ok=True)
    refresh(home)
    output.note(f"{known.cluster}: forgotten on this computer")


def why_in_doubt(known: Inventory, home: Home, environ: Mapping[str, str]) -> str | None:
    """Why it is not known that nothing of the cluster bills; None: AWS says that nothing does. Raises StillBills."""
    try:
        rehearsed = region_access(home, environ) if known.rehearsal else None
        seen = look_for(known, AwsClients.at(rehearsed, region=known.region))
    except ClusterctlError as e:
        return e.message
    refuse_living(known, seen)
    return f"AWS does not say what it has of {', '.join(sorted(seen.not_listed))}" if seen.not_listed else None


def refuse_living(known: Inventory, seen: Look) -> None:
    """Raises StillBills when something of the cluster bills: without what is known here nobody would find it."""
    left = billing(seen)
    if left:
        raise StillBills(
            f"{known.cluster} is not gone, and was not forgotten: {count(len(left), 'thing')} of it still billing; "
            f"without its stack, {reap_cluster(known)} ends all but data",
            problems=[f"  {thing.kind} {thing.id}: bills {bill_of(thing)}" for thing in left],
            hint=down_again(known),
        )


def _ask(request: ForgetRequest, output: Output, doubt: str) -> None:
    """Raises UsageError where nobody agrees."""
    known = request.inventory
    unsure = f"{known.cluster}: it is not known whether its machines run ({doubt})"
    if request.is_agreed:
        output.note(f"{unsure}; {reap_cluster(known)} would find them")
        return
    question = f"{unsure}. What runs keeps billing, and this computer can no longer find it. Forget it anyway?"
    if not output.confirm(question):
        raise UsageError(f"{unsure}; nothing was forgotten", hint=reap_cluster(known))
