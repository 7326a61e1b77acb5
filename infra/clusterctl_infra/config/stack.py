"""What a stack's Pulumi config says to clusterctl: overrides, the ledger's copy, whether it is down, the run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from clusterctl_infra.adopted import NOTHING_ADOPTED, Adopted, adopted_from_json
from clusterctl_infra.catalog.instance import FIRST_LAYOUT, NEWEST_LAYOUT
from clusterctl_infra.config.choice import Chosen, chosen_from_json
from clusterctl_infra.config.document import read_document
from clusterctl_infra.config.flag_size import NODES_OVER
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.ledger import Ledger, ledger_from_json
from clusterctl_infra.ledger_correction import LedgerCorrection, correction_from_json
from clusterctl_infra.ranks import is_rank_order
from clusterctl_infra.strict_json import LARGEST_WHOLE

T = TypeVar("T")
NAMESPACE = "clusterctl:"
OWN_KEYS = (
    "ledger",
    "corrected",
    "down",
    "run",
    "kept",
    "slot-ranks",
    "reserved",
    "unreserved",
    "until",
    "extended-from",
    "extended-budget",
    "generation-floor",
    "adopted",
    "chosen",
    "block",
    "account",
    "layout",
)
"""Written by clusterctl alone; the others are a person's own settings, or the size that `up --nodes` gave."""


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """The `clusterctl:` part of a stack's config."""

    overrides: Mapping[str, str]
    ledger: Ledger
    down: bool
    """Whether the cluster is at zero nodes on purpose."""
    run: int
    """The number of the current run; 1 at birth."""
    correction: LedgerCorrection | None = None
    """How the ledger in the state differs from `ledger`; None: it does not."""
    kept: frozenset[str] | None = None
    """Mounts whose storage `down` kept; None: all mounts of the configuration that `down` keeps."""
    slot_ranks: tuple[int, ...] = ()
    """The rank of each slot, ordered by topology once and then kept; empty: never ordered."""
    reserved: int = 0
    """How many places the reservation has at least; more than there are nodes in a run with surplus machines alive."""
    unreserved: bool = False
    """Whether the reservation ended before its nodes did; no other is made while these run."""
    until: datetime | None = None
    """When this run ends, as `clusterctl extend` set it; None: when caps.runtime is over."""
    extended_from: datetime | None = None
    """The deadline before an `extend` that is not finished."""
    generation_floor: int = 0
    """The lowest generation that the membership may get: nodes reported the one below it, which the state did not
    know."""
    adopted: Adopted = NOTHING_ADOPTED
    """What exists and is used, as AWS described it before the last run."""
    chosen: Chosen | None = None
    """The type and zone that `clusterctl up` found room for; None: it has not looked for room."""
    block: str | None = None
    """The capacity block that `clusterctl up` found or bought; None: none yet."""
    account: str | None = None
    """The AWS account that the provider may work in, by its number, as `clusterctl up` found it; None: in any."""
    layout: int | None = None
    """How interfaces are laid out since the cluster's birth; None: in the first layout."""
    nodes_over: str | None = None
    """What cluster.yaml said when `up --nodes` gave the size in `overrides`; None: no flag did."""
    cluster_file: Path | None = None
    """Where the configuration was read, as a person in the program's folder calls it; None: a program made it."""

    @property
    def zone(self) -> str | None:
        """The zone for a new cluster: that of an adopted network or reservation, else one with capacity; None: not
        decided.
        """
        return self.adopted.zone or (None if self.chosen is None else self.chosen.zone)


def stack_settings(values: Mapping[str, str]) -> StackSettings:
    """The settings in `values` (keys without the namespace). Raises ConfigError."""
    return StackSettings(
        overrides={key: text for key, text in values.items() if key not in (*OWN_KEYS, NODES_OVER)},
        ledger=_written("ledger", values.get("ledger"), _ledger, "not a ledger") or Ledger(),
        down=_flag("down", values.get("down", "false")),
        run=_count("run", values.get("run", "1"), fewest=1),
        correction=_written("corrected", values.get("corrected"), _correction, "no part of a ledger"),
        kept=_kept(values.get("kept")),
        slot_ranks=_slot_ranks(values.get("slot-ranks", "[]")),
        reserved=_count("reserved", values.get("reserved", "0"), fewest=0),
        unreserved=_flag("unreserved", values.get("unreserved", "false")),
        until=_instant(values, "until"),
        extended_from=_instant(values, "extended-from"),
        generation_floor=_count("generation-floor", values.get("generation-floor", "0"), fewest=0, most=LARGEST_WHOLE),
        adopted=_written("adopted", values.get("adopted"), _adopted, "no description of what is used")
        or NOTHING_ADOPTED,
        chosen=_written("chosen", values.get("chosen"), chosen_from_json, "no type and zone"),
        block=_block(values.get("block")),
        account=_account(values.get("account")),
        layout=_layout(values.get("layout")),
        nodes_over=values.get(NODES_OVER),
    )


def read_stack_settings(stack_dir: Path, stack_name: str) -> StackSettings:
    """The settings in `Pulumi.<stack_name>.yaml`; without the file, empty ones. Raises ConfigError."""
    path = stack_dir / f"Pulumi.{stack_name}.yaml"
    hint = f"${{EDITOR:-nano}} {shlex.quote(str(path))}"  # works in any folder, with any stack selected
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return stack_settings({})
    except (OSError, ValueError) as e:
        raise ConfigError(f"{path}: cannot be read ({e})", hint=hint) from e
    read = read_document(text)
    if read.problems:
        first = read.problems[0]
        raise ConfigError(f"{path}: line {first.line or 1}: {first.message}", hint=hint)
    config = read.tree.get("config") if isinstance(read.tree, dict) else None
    if config is not None and not isinstance(config, dict):
        raise ConfigError(f"{path}: config is not a mapping", hint=hint)
    try:
        return stack_settings(_own(config or {}, path))
    except ConfigError as e:
        raise ConfigError(f"{path}: {e.message}", problems=e.problems, hint=hint) from e


def _own(config: Mapping[str, object], path: Path) -> dict[str, str]:
    found = {}
    for key, value in config.items():
        if not key.startswith(NAMESPACE):
            continue
        if not isinstance(value, str):
            raise ConfigError(f"{key} is not a plain value (secrets, lists and mappings are not read)")
        found[key.removeprefix(NAMESPACE)] = value
    return found


def _written(key: str, text: str | None, read: Callable[[str], T], is_not: str) -> T | None:
    """What clusterctl wrote under that key, as `read` understands it; None if nothing is there. Raises ConfigError."""
    if not text:
        return None
    try:
        return read(text)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as e:
        raise ConfigError(
            f"clusterctl:{key} is {is_not} ({e}); clusterctl writes it, no person does",
            hint=f"pulumi config rm clusterctl:{key}",
        ) from e


def _ledger(text: str) -> Ledger:
    return ledger_from_json(json.loads(text))


def _correction(text: str) -> LedgerCorrection:
    return correction_from_json(json.loads(text))


def _adopted(text: str) -> Adopted:
    return adopted_from_json(json.loads(text))


def _block(text: str | None) -> str | None:
    if not text:
        return None
    if not re.fullmatch(r"c[rb]-[0-9a-z]{8,32}", text, re.ASCII):
        raise ConfigError(
            f"clusterctl:block: {text!r}: no capacity block's id; clusterctl writes it, no person does",
            hint="pulumi config rm clusterctl:block",
        )
    return text


def _account(text: str | None) -> str | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) == 12):
        raise ConfigError(
            f"clusterctl:account: {text!r}: no account's number, which has 12 digits; clusterctl writes it",
            hint="pulumi config rm clusterctl:account",
        )
    return text


def _layout(text: str | None) -> int | None:
    return None if text is None else _count("layout", text, fewest=FIRST_LAYOUT, most=NEWEST_LAYOUT)


def _flag(key: str, text: str) -> bool:
    if text not in ("true", "false"):
        hint = f"pulumi config rm clusterctl:{key}"
        raise ConfigError(f"clusterctl:{key}: {text!r}: write true or false", hint=hint)
    return text == "true"


def _kept(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        mounts = json.loads(text)
    except ValueError:
        mounts = None
    if not isinstance(mounts, list) or not all(isinstance(mount, str) for mount in mounts):
        raise ConfigError(
            f"clusterctl:kept: {text!r}: no list of mounts; clusterctl writes it, no person does",
            hint="pulumi config rm clusterctl:kept",
        )
    return frozenset(mounts)


def _slot_ranks(text: str) -> tuple[int, ...]:
    try:
        ranks = json.loads(text)
    except (ValueError, RecursionError):
        ranks = None
    if not isinstance(ranks, list) or not is_rank_order(ranks):
        raise ConfigError(
            f"clusterctl:slot-ranks: {text!r}: not one rank for each slot, 0 for slot 0; clusterctl writes it, no "
            "person does",
            hint="pulumi config rm clusterctl:slot-ranks",
        )
    return tuple(ranks)


def _instant(values: Mapping[str, str], key: str) -> datetime | None:
    text = values.get(key)
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ConfigError(
            f"clusterctl:{key}: {text!r}: no time with a zone, such as 2026-11-21T16:00:00+00:00; clusterctl extend "
            "writes it",
            hint=f"pulumi config rm clusterctl:{key}",
        )
    return instant


def _count(key: str, text: str, *, fewest: int, most: int = 10**6 - 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and fewest <= int(text) <= most):
        hint = f"pulumi config rm clusterctl:{key}"
        raise ConfigError(f"clusterctl:{key}: {text!r}: a whole number from {fewest}", hint=hint)
    return int(text)
