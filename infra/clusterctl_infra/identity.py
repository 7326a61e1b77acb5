"""What a cluster is from birth to end, as kept in the stack's state by the Identity resource."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.catalog.instance import FIRST_LAYOUT, NEWEST_LAYOUT

CLUSTER_ID_LENGTH = 12
STAND_IN_ID = "0" * CLUSTER_ID_LENGTH
"""The cluster's id in a plan that is made before there is a cluster."""
SEED_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Facts that never change while a cluster lives, but for `run`, `started_at` and a deliberate new image."""

    cluster_id: str
    """12 lower-case hex digits; every look-up and IAM condition uses it."""
    started_at: datetime
    """UTC; `caps.runtime` counts from here. A new run (after zero nodes) gets a new one."""
    run: int
    """1 at birth, one more after each `down` and `up`."""
    owner: str
    image_id: str
    """The AMI id, resolved once."""
    zone: str
    """The availability zone, chosen once."""
    seed: bytes
    """32 secret bytes from which all keys derive."""
    layout: int = FIRST_LAYOUT
    """How the machines' interfaces are laid out; a cluster older than this field has the first layout."""


def stand_in_identity(
    *,
    owner: str,
    image_id: str | None,
    zone: str | None,
    region: str,
    now: datetime,
    layout: int = NEWEST_LAYOUT,
) -> Identity:
    """An identity for plans made before the first `up`: same lengths, keys that no machine will ever carry."""
    return Identity(
        cluster_id=STAND_IN_ID,
        started_at=now,
        run=1,
        owner=owner,
        image_id=image_id or "ami-" + "0" * 17,
        zone=zone or f"{region}?",
        seed=hashlib.sha256(b"clusterctl stand-in seed: never on a machine").digest(),
        layout=layout,
    )
