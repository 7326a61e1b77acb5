"""The role that a machine has, and what its policies allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any  # statements of a policy

from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY


def role_of(store: Store, instance: Record) -> Record | None:
    """The role in the instance's profile; None without a profile, or if its profile has none."""
    profile = instance.facts["profile"]
    rows = (row for row in store.live(INSTANCE_PROFILE) if profile in (row.id, row.outputs["arn"]))
    found = next(rows, None)
    role = None if found is None else found.inputs.get("role")
    return None if role is None else store.get(ROLE, str(role))


def allows(store: Store, role: Record, action: str, resource: str) -> bool:
    """Whether an inline policy of the role allows the action. It knows only whole names and `*`, as in our policies."""
    return any(
        row.get("Effect") == "Allow"
        and action in _listed(row.get("Action"))
        and {resource, "*"} & set(_listed(row.get("Resource")))
        and not row.get("Condition")
        for row in _statements(store, role)
    )


def _statements(store: Store, role: Record) -> Iterator[dict[str, Any]]:
    for policy in store.live(ROLE_POLICY):
        if policy.inputs["role"] == role.id:
            yield from json.loads(policy.inputs["policy"])["Statement"]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
