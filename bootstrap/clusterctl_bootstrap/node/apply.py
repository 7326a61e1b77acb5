"""Takes a pushed membership: checks it, keeps it, writes out its files and arms the deadline anew."""

import contextlib
import json
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import guard, status
from clusterctl_bootstrap.node.environment import DOMAIN, NAME, address, slots_by_rank
from clusterctl_bootstrap.node.files import locked, log, write_atomically
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.writing import write_environment, write_identity

VERSION = 1
REQUIRED = {
    "cluster_id": str,
    "run": int,
    "generation": int,
    "nodes": int,
    "gpus_per_node": int,
    "slot_cidr": str,
    "deadline": str,
    "env": dict,
}

SSH_NAMES = "etc/ssh/ssh_config.d/clusterctl-ranks.conf"


def apply(root: Path, text: str, outside: Outside) -> Dict[str, Any]:
    """The answer to the sender of the membership: `{"ok": true, "generation": n}`, or `ok` false and the reason in
    `error`.
    """
    try:
        with locked(root):
            offered = json.loads(text)
            reason = refusal(offered, facts_file.birth(root), _present(root))
            if not reason:
                _take(root, offered, outside)
    except (ValueError, OSError, KeyError, facts_file.FactsError, guard.GuardFailed) as e:
        reason = "%s: %s" % (type(e).__name__, e)
    if reason:
        with contextlib.suppress(OSError):  # whoever may not write the log may not push either, and is told so
            log(root, "membership refused: %s" % reason)
        return {"ok": False, "error": reason}
    return {"ok": True, "generation": offered["generation"]}


def refusal(offered: Any, birth: Dict[str, Any], present: Optional[Dict[str, Any]]) -> str:
    """Why this membership is not taken; empty when it is."""
    if not isinstance(offered, dict) or offered.get("version") != VERSION:
        return "not a cluster.json of version %d" % VERSION
    malformed = _malformed(offered)
    if malformed:
        return malformed
    if offered["cluster_id"] != birth["cluster_id"]:
        return "cluster_id: %s was offered, this is a node of %s" % (offered["cluster_id"], birth["cluster_id"])
    if offered["nodes"] <= birth["slot"]:
        return "nodes: %d was offered, this is slot %d" % (offered["nodes"], birth["slot"])
    is_ours = present is not None and present["cluster_id"] == birth["cluster_id"]  # not another cluster's in the image
    have = present if present is not None and is_ours and present["generation"] > birth["generation"] else birth
    for key in ("run", "generation"):
        if offered[key] < have.get(key, 0):
            return "%s: %d was offered, %d is here" % (key, offered[key], have[key])
    if offered["generation"] == have["generation"] and offered != have:
        return "generation: %d is here already, with other content" % have["generation"]
    return ""


def _present(root: Path) -> Optional[Dict[str, Any]]:
    """The last membership; one that cannot be read is none, so that the next push heals it."""
    try:
        return facts_file.pushed(root)
    except facts_file.FactsError:
        return None


def _malformed(offered: Dict[str, Any]) -> str:
    for key, kind in REQUIRED.items():
        if not isinstance(offered.get(key), kind) or isinstance(offered[key], bool):
            return "%s: %r is not %s" % (key, offered.get(key), kind.__name__)
    for name, value in offered["env"].items():
        if not NAME.match(name) or not isinstance(value, str) or "\0" in value:
            return "env: %r cannot be a variable" % name
    keys = offered.get("authorized_keys") or []
    if not isinstance(keys, list) or not all(isinstance(key, str) and "\n" not in key for key in keys):
        return "authorized_keys: not a list of lines"
    if offered.get("ranks") and not _are_ranks(offered["ranks"], offered["nodes"]):
        return "ranks: %r is not one rank for each slot, 0 for slot 0" % offered["ranks"]
    try:
        facts_file.epoch(offered["deadline"])
        address(offered["slot_cidr"], offered["nodes"] - 1)
    except (ValueError, IndexError) as e:
        return "deadline, slot_cidr or nodes: %s" % e
    return "" if offered["nodes"] > 0 else "nodes: %d" % offered["nodes"]


def _are_ranks(ranks: Any, nodes: int) -> bool:
    """Slot 0 has rank 0, since its address is the one where all ranks meet."""
    if not isinstance(ranks, list) or len(ranks) != nodes or ranks[0] != 0:
        return False
    return sorted(map(repr, ranks)) == sorted(map(repr, range(nodes)))  # `true` is no 1 here


def _take(root: Path, offered: Dict[str, Any], outside: Outside) -> None:
    """Writes the deadline first: if this is interrupted, the next `apply` or boot continues from the files on disk."""
    state = root / "var/lib/clusterctl"
    moment = facts_file.epoch(offered["deadline"])
    write_atomically(state / "deadline", "%s %d %d\n" % (offered["cluster_id"], offered["generation"], moment))
    write_atomically(state / "cluster.json", json.dumps(offered) + "\n", 0o600)
    if guard.applies(root) and not guard.is_host(root):
        guard.arm(root, outside)
    known = facts_file.present(root)
    write_identity(root, known)
    write_ssh_names(root, known)
    write_environment(root, known, outside)
    status.refresh(root)
    log(
        root,
        "membership of generation %d: %d nodes until %s"
        % (offered["generation"], offered["nodes"], offered["deadline"]),
    )


def write_ssh_names(root: Path, facts: Mapping[str, Any]) -> None:
    """Writes ssh's settings for names with a rank, or removes them; hosts have none, as they have no certificates."""
    if guard.is_host(root):
        return
    path, text = root / SSH_NAMES, ssh_names(facts)
    if text:
        write_atomically(path, text)
    elif path.exists():
        path.unlink()


def ssh_names(facts: Mapping[str, Any]) -> str:
    """Settings for ssh: under a name with a rank, a node's host key is checked by its own name, which has the slot.

    Host certificates are made before the ranks are known. Empty where each rank is its slot.
    """
    cluster, slots = facts["cluster"], slots_by_rank(facts)
    return "".join(
        "Host %s-%d.%s\nHostKeyAlias %s-%d\n" % (cluster, rank, DOMAIN, cluster, slot)
        for rank, slot in enumerate(slots)
        if rank != slot
    )
