"""What this node is: its birth certificate, and the newest membership that was pushed to it."""

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Optional

PUSHED = ("run", "generation", "nodes", "slot_cidr", "deadline", "env", "gpus_per_node", "authorized_keys", "ranks")


class FactsError(Exception):
    """A file that is missing or is not what it should be; the text says which and why."""


def birth(root: Path) -> Dict[str, Any]:
    """The facts in user-data. Raises FactsError."""
    return read_json(root / "var/lib/clusterctl/birth.json")


def pushed(root: Path) -> Optional[Dict[str, Any]]:
    """The last membership pushed, or None. Raises FactsError."""
    path = root / "var/lib/clusterctl/cluster.json"
    found = read_json(path) if path.exists() else None
    if found is not None and not (isinstance(found.get("generation"), int) and "cluster_id" in found):
        raise FactsError("%s: no cluster_id or generation in it" % path)
    return found


def present(root: Path) -> Dict[str, Any]:
    """Birth facts, overlaid by a pushed membership of a higher generation. Raises FactsError."""
    facts = birth(root)
    newer = pushed(root)
    if newer is not None and newer["cluster_id"] == facts["cluster_id"] and newer["generation"] > facts["generation"]:
        facts.update({key: newer[key] for key in PUSHED if key in newer})
        if facts.get("ranks"):
            facts["rank"] = facts["ranks"][facts["slot"]]
    return facts


def membership_hash(facts: Dict[str, Any]) -> str:
    """16 hex digits of what a push may change: the same on all nodes that have the same membership."""
    text = json.dumps([facts.get(key) for key in PUSHED], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_json(path: Path) -> Dict[str, Any]:
    """The JSON object in a file. Raises FactsError naming the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise FactsError("%s: %s" % (path, e)) from e
    if not isinstance(data, dict):
        raise FactsError("%s: not a JSON object" % path)
    return data


def epoch(deadline: str) -> int:
    """Seconds since 1970 of an ISO time with `Z` or an offset. Raises ValueError."""
    moment = datetime.fromisoformat(deadline.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError("%s has no time zone" % deadline)
    return int(moment.timestamp())
