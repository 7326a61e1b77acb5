"""The last purchase of a capacity block for a cluster, `purchases/<cluster>.json`: on the disk before AWS is asked."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from clusterctl_infra.errors import ConfigError
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.put_in_place import put_in_place
from clusterctl_infra.strict_json import NotAsExpected, parsed_object

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """What was asked for, and what came of it."""

    purchase_id: str
    """12 hex digits, made for this purchase; the block carries them as a tag."""
    offering_id: str
    region: str
    account: str
    words: str
    """What is bought, and for how much, as a person agreed to it."""
    ends_at: datetime
    asked_at: datetime
    reservation_id: str | None
    """None: AWS has not answered, as far as this computer knows."""


def read_purchase(path: Path) -> Purchase | None:
    """The purchase in the file; None where there is none. Raises ConfigError for a file that cannot be read.

    An unreadable file must not pass for no purchase: the next purchase would be the second.
    """
    try:
        row = parsed_object(path.read_bytes())
        return Purchase(
            purchase_id=row.text("purchase_id"),
            offering_id=row.text("offering_id"),
            region=row.text("region"),
            account=row.text("account"),
            words=row.text("words"),
            ends_at=row.moment("ends_at"),
            asked_at=row.moment("asked_at"),
            reservation_id=row.text_or_none("reservation_id"),
        )
    except FileNotFoundError:
        return None
    except (OSError, NotAsExpected) as e:
        raise ConfigError(
            f"{path}: cannot be read ({e}), and it says whether a capacity block was bought; nothing was bought now. "
            "See in the EC2 console which blocks there are, and remove the file",
            hint=f"rm {path}",
        ) from e


def write_purchase(path: Path, purchase: Purchase) -> None:
    """Puts the purchase in place; file and folder are on the disk when this returns. Raises OSError."""
    make_private_folder(path.parent)
    times = {"ends_at": purchase.ends_at.isoformat(), "asked_at": purchase.asked_at.isoformat()}
    put_in_place(path, json.dumps({"version": VERSION, **asdict(purchase), **times}), keeps_owner=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def paid_words(path: Path, *, now: datetime, is_rehearsal: bool) -> str | None:
    """`capacity block cr-0a1b… stays: 4 × p5.48xlarge …; it is paid until its end, and AWS returns nothing`.

    None where none was bought, or the block has ended; if the file cannot be read, the sentence says why.
    """
    try:
        purchase = read_purchase(path)
    except ConfigError as e:  # the caller is ending the cluster, and goes on
        return e.message
    if purchase is None or purchase.ends_at <= now:
        return None
    named = purchase.reservation_id or f"{purchase.offering_id} may have been bought (AWS has not confirmed it), and"
    paid = "its payment was rehearsed" if is_rehearsal else "it is paid until its end, and AWS returns nothing"
    return f"capacity block {named} stays: {purchase.words}; {paid}. The next up uses it"
