"""The Membership resource: which machine is in which slot, since when, at what price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any  # property values

from clusterctl_infra.ledger import HIGHEST_SLOT, STANDING_KINDS, Ledger, Span, ledger_from_json, ledger_to_json
from clusterctl_infra.ledger_correction import corrected, correction_from_json
from clusterctl_infra.provider.inventory_file import with_membership
from clusterctl_infra.provider.ledger_change import LedgerChange, Rates, changed_rates, close_all, follow
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.property_values import UNKNOWN, has_unknown
from clusterctl_infra.provider.resource import CheckFailure, Difference, Place, Properties
from clusterctl_infra.strict_json import Fields, NotAsExpected

_REQUIRED = ("cluster", "cluster_id", "run", "started_at", "deadline", "planned_at", "members")
_PRICES = ("node_price_usd_per_hour", *(f"{kind}_usd_per_hour" for kind in STANDING_KINDS))
_COUNTED = ("members", "run", "deadline", "live", "ranks")
"""What makes a new generation: `live` is a hash of what else running nodes get (env, keys), `ranks` the rank of each
slot where it is not the slot. Another price of a node counts for machines that come later, so it alone changes nothing;
another rate of addresses or storage is written into the ledger, and nodes get nothing."""


@dataclass(frozen=True, kw_only=True)
class MembershipResource:
    """Keeps generation and ledger in the state, and a copy in this computer's files."""

    home: LocalHome
    now: Callable[[], datetime]

    def check(self, inputs: Properties) -> list[CheckFailure]:
        """Every input that is missing or cannot be read, and members that share a slot."""
        failures = [CheckFailure(property=key, reason=f"{key} is missing") for key in _REQUIRED if key not in inputs]
        if failures or has_unknown(inputs["members"]):
            return failures
        failures = _unreadable(inputs)
        if failures:
            return failures
        slots = [member["slot"] for member in inputs["members"]]
        return [
            CheckFailure(property="members", reason=f"slot {slot} has {slots.count(slot)} members")
            for slot in sorted(set(slots))
            if slots.count(slot) > 1
        ]

    def difference(self, state: Properties, old_inputs: Properties, inputs: Properties) -> Difference:
        """The inputs that count and have changed, or `members` if the inventory file here does not have them.

        A new `planned_at` or another price of a node never counts.
        """
        replaced = tuple(key for key in ("cluster_id", "cluster") if inputs[key] != state[key])
        changed = [key for key in _COUNTED if _differs(key, state, inputs)]
        changed += [f"{kind}_usd_per_hour" for kind in changed_rates(_ledger(state), _rates(inputs))]
        if _is_corrected(state, inputs):
            changed.append("correction")
        if _floor(inputs) > int(state["generation"]):
            changed.append("generation_floor")
        if not changed and not self._is_written(state):
            changed = ["members"]
        return Difference(changed=(*changed, *replaced), replaced=replaced)

    def create(self, inputs: Properties, place: Place) -> tuple[str, dict[str, Any]]:
        """The first generation, with a ledger that begins at the cluster's start."""
        nothing = {"generation": 0, "members": [], "ledger": [], "run": 0, "deadline": ""}
        return str(inputs["cluster_id"]), self.update(nothing, inputs, place)

    def update(self, state: Properties, inputs: Properties, place: Place) -> dict[str, Any]:
        """The next generation when what counts changed or is corrected, else the same one, written here again.

        `generation_floor`: the generation is at least that, as nodes have a newer membership than this state.
        """
        kept = {key: inputs.get(key) for key in ("cluster", "cluster_id", *_COUNTED)}
        if has_unknown([kept, inputs["started_at"]]):
            return {**kept, "generation": UNKNOWN, "ledger": UNKNOWN}
        # A correction is for one generation: made twice, it would open again what this change closes.
        is_changed = any(_differs(key, state, inputs) for key in _COUNTED) or _is_corrected(state, inputs)
        generation = max(int(state["generation"]) + (1 if is_changed else 0), _floor(inputs))
        is_changed = generation > int(state["generation"])
        change = _change(state, inputs)
        outputs = {**kept, "generation": generation, "ledger": ledger_to_json(change.ledger)}
        if not place.preview:
            self._write(outputs)
            if is_changed or change.is_any:
                self._append(outputs, change, at=str(inputs["planned_at"]))
        return outputs

    def delete(self, state: Properties, place: Place) -> None:
        """Closes the ledger: what ran until now is written down before the state forgets it."""
        change = close_all(_ledger(state), at=self.now().replace(microsecond=0), ends_by=_deadline(state))
        closed = {**state, "generation": int(state["generation"]) + 1, "members": []}
        self._append(closed, change, at=self.now().replace(microsecond=0).isoformat())

    def _is_written(self, state: Properties) -> bool:
        present = self.home.read_inventory(str(state["cluster"]))
        if present is None or present.get("cluster_id") != state["cluster_id"]:
            return False
        ids = {node.get("slot"): node.get("instance_id") for node in present.get("nodes", ())}
        is_known = all(ids.get(member["slot"]) == member["instance_id"] for member in state["members"])
        return is_known and bool(present.get("generation") == state["generation"])

    def _write(self, outputs: Mapping[str, Any]) -> None:
        cluster = str(outputs["cluster"])
        with self.home.inventory_lock(cluster):
            present = self.home.read_inventory(cluster)
            if present is None or present.get("cluster_id") != outputs["cluster_id"]:
                return
            merged = with_membership(
                present,
                members=outputs["members"],
                generation=outputs["generation"],
                deadline=outputs["deadline"],
            )
            self.home.write_inventory(cluster, merged)

    def _append(self, outputs: Mapping[str, Any], change: LedgerChange, *, at: str) -> None:
        row = {
            "at": at,
            "cluster": outputs["cluster"],
            "run": outputs["run"],
            "generation": outputs["generation"],
            "deadline": outputs["deadline"],
            "opened": ledger_to_json(change.opened),
            "closed": ledger_to_json(change.closed),
        }
        self.home.append_ledger(str(outputs["cluster_id"]), row)


def _unreadable(inputs: Properties) -> list[CheckFailure]:
    """The known inputs that have the wrong type, each named."""
    row = Fields({key: value for key, value in inputs.items() if not has_unknown(value)})
    readers: dict[str, Callable[[], object]] = {
        "run": partial(row.whole, "run", low=1),
        **({"generation_floor": partial(row.whole, "generation_floor")} if row.has("generation_floor") else {}),
        **{key: partial(row.text, key) for key in ("cluster", "cluster_id")},
        **{key: partial(row.moment, key) for key in ("started_at", "planned_at", "deadline")},
        **{key: partial(row.number, key, low=0) for key in _PRICES if row.has(key)},
    }
    readers = {"members": partial(_read_members, row)} | {key: readers[key] for key in readers if key in row.row}
    failures = []
    for key, read in readers.items():
        try:
            read()
        except NotAsExpected as e:
            failures.append(CheckFailure(property=key, reason=str(e)))
    return failures


def _read_members(row: Fields) -> None:
    if not row.has("members"):
        raise NotAsExpected("members is null: it has to be a list, one row for each machine")
    for member in row.objects("members"):
        member.whole("slot", high=HIGHEST_SLOT)
        member.text_or_none("instance_id")


def _differs(key: str, state: Properties, inputs: Properties) -> bool:
    """Whether two values differ; a missing value equals an empty list, because the engine leaves out empty ones and
    older states lack it.
    """
    return (inputs.get(key) or None) != (state.get(key) or None)


def _change(state: Properties, inputs: Properties) -> LedgerChange:
    price = inputs.get("node_price_usd_per_hour")
    return follow(
        _ledger(state),
        {int(member["slot"]): str(member["instance_id"]) for member in inputs["members"]},
        _rates(inputs),
        at=datetime.fromisoformat(str(inputs["planned_at"])),
        ends_by=_deadline(state),
        run_started_at=datetime.fromisoformat(str(inputs["started_at"])),
        price_usd_per_hour=None if price is None else float(price),
        observed=_observed(state, inputs),
    )


def _is_corrected(state: Properties, inputs: Properties) -> bool:
    """Whether this change corrects the ledger."""
    return corrected(_ledger(state), _observed(state, inputs)) != _ledger(state)


def _floor(inputs: Properties) -> int:
    return int(inputs.get("generation_floor") or 0)


def _observed(state: Properties, inputs: Properties) -> tuple[Span, ...]:
    """The spans to correct in this generation's ledger; a correction for another generation is made already, or too
    old."""
    row = inputs.get("correction")
    if row is None:
        return ()
    correction = correction_from_json(row)
    return correction.spans if correction.generation == int(state["generation"]) else ()


def _rates(inputs: Properties) -> Rates:
    """The rates; one that arrives as null or, since the engine leaves nulls out, not at all is unknown, never 0."""
    return {
        kind: None if (rate := inputs.get(f"{kind}_usd_per_hour")) is None else float(rate) for kind in STANDING_KINDS
    }


def _ledger(state: Properties) -> Ledger:
    return ledger_from_json(state["ledger"])


def _deadline(state: Properties) -> datetime | None:
    """The latest instant at which the present members end; None before there are any."""
    return datetime.fromisoformat(str(state["deadline"])) if state["deadline"] else None
