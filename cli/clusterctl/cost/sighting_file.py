"""The file of what AWS said of a cluster's machines: `observed/<cluster_id>.jsonl`, appended and never changed."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.ledger import Ledger

from clusterctl.cloud.instances import InstanceState
from clusterctl.cost.sighting import (
    Observed,
    SeenMachine,
    Sighting,
    news,
    seen_machines,
    sighting_from_json,
    sighting_to_json,
)
from clusterctl.home import Home


def read_seen(path: Path) -> dict[str, SeenMachine]:
    """Instance id → machine; a line that cannot be read is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    return seen_machines(one for line in lines if (one := _read(line)) is not None)


def read_observed(home: Home, account: Ledger | None, *, cluster_id: str, region: str) -> Observed:
    """What is known of the cluster's machines, with today's prices of those that are in no account."""
    machines = read_seen(home.observed_file(cluster_id))
    known = set() if account is None else {span.instance_id for span in account.spans}
    types = {one.instance_type for id, one in machines.items() if id not in known and one.instance_type is not None}
    if not types:
        return Observed(machines=machines)
    catalog = load_catalog(home.prices_file)
    return Observed(machines=machines, usd_per_hour={name: catalog.price_usd_per_hour(name, region) for name in types})


def note_instances(path: Path, instances: Iterable[InstanceState], *, at: datetime) -> None:
    """Writes down what is new in a look at `at`.

    A full disk keeps nobody from asking for a status: what was not written is assumed from the account, and said so.
    """
    rows = [sighting_to_json(one) for one in news(read_seen(path), instances, at=at)]
    if not rows:
        return
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            stream.write(text.encode())  # one write: two commands at once do not tear each other's lines


def _read(line: str) -> Sighting | None:
    try:
        row = json.loads(line)
        return sighting_from_json(row)
    except (ValueError, KeyError, TypeError):
        return None
