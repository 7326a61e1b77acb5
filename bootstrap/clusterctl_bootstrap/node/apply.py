"""A pushed membership becomes this node's: checked, kept, written out, the deadline armed anew."""

import json
import subprocess
from pathlib import Path
from typing import Any, Dict

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.boot import epoch
from clusterctl_bootstrap.node.files import write_atomically
from clusterctl_bootstrap.node.writing import write_contract

REQUIRED = {"cluster_id": str, "generation": int, "nodes": int, "slot_cidr": str, "deadline": str, "env": dict}
ARM_TIMEOUT_S = 30


def apply(root: Path, text: str) -> Dict[str, Any]:
    """The answer for whoever pushed: `{"ok": true, "generation": n}`, or `ok` false and the reason in `error`."""
    try:
        offered = json.loads(text)
        reason = refusal(offered, facts_file.birth(root), facts_file.pushed(root))
    except (ValueError, facts_file.FactsError) as e:
        reason = str(e)
    if reason:
        return {"ok": False, "error": reason}
    write_atomically(root / "var/lib/clusterctl/cluster.json", json.dumps(offered) + "\n", 0o600)
    write_atomically(root / "var/lib/clusterctl/deadline", "%d\n" % epoch(offered["deadline"]))
    present = facts_file.present(root)
    write_contract(root, present)
    status.refresh(root, present)
    return dict({"ok": True, "generation": offered["generation"]}, **_arm(root))


def refusal(offered: Any, birth: Dict[str, Any], present: Any) -> str:
    """Why this membership is not taken; empty when it is."""
    if not isinstance(offered, dict):
        return "not a JSON object"
    for key, kind in REQUIRED.items():
        if not isinstance(offered.get(key), kind):
            return "%s: %r is not %s" % (key, offered.get(key), kind.__name__)
    try:
        epoch(offered["deadline"])
    except ValueError as e:
        return "deadline: %s" % e
    if offered["cluster_id"] != birth["cluster_id"]:
        return "cluster_id: %s was offered, this is a node of %s" % (offered["cluster_id"], birth["cluster_id"])
    have = present if present is not None else birth
    if offered["generation"] < have["generation"]:
        return "generation: %d was offered, %d is here" % (offered["generation"], have["generation"])
    if offered["generation"] == have["generation"] and offered != present:
        return "generation: %d is here already, with other content" % have["generation"]
    return ""


def _arm(root: Path) -> Dict[str, Any]:
    """Moves the node's own deadline; a failure is told, the membership holds all the same."""
    arm = root / "run/clusterctl/arm"
    if not arm.exists():
        return {}
    try:
        done = subprocess.run([str(arm)], capture_output=True, text=True, timeout=ARM_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": "the deadline was not armed within %d s" % ARM_TIMEOUT_S}
    if done.returncode != 0:
        return {"ok": False, "error": "the deadline was not armed: %s" % done.stderr.strip()[-300:]}
    return {}
