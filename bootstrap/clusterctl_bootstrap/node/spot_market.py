"""What AWS tells a spot machine about its end, read from the metadata service in a thread of its own.

On a machine that is not spot, AWS is asked only once. If the metadata service cannot be reached, nothing is known, and
nothing changes.
"""

import threading
from datetime import datetime, timezone
from typing import Any, Callable, Dict, NamedTuple

from clusterctl_bootstrap.node.facts import epoch
from clusterctl_bootstrap.node.metadata_service import Page
from clusterctl_bootstrap.node.received import parsed

POLL_S = 5.0
"""As AWS recommends it (EC2 User Guide, "Spot Instance interruption notices"; 2026-11-22)."""
RETRY_S = 60.0
"""The pause until the next try to learn whether this is a spot machine."""
NOTICE_S = 120
"""The time from AWS's notice to the end, if the notice names no time that can be believed."""
PAST_S, AHEAD_S = 600, 86400
"""An instant further in the past or future than this cannot be from a notice of AWS's."""
LONGEST_PAGE, MOST_BRACKETS = 4096, 20
NOT_SPOT = frozenset({"on-demand", "scheduled", "capacity-block"})
"""The other answers of AWS (EC2 User Guide, "Instance metadata categories"; 2026-11-24)."""
MARKET, ACTION, REBALANCE = "instance-life-cycle", "spot/instance-action", "events/recommendations/rebalance"
STAMP = "%Y-%m-%dT%H:%M:%SZ"


class SpotNotices(NamedTuple):
    """What AWS has told, each an instant in UTC by AWS's clock; empty where it told nothing."""

    ends: str = ""
    """When it takes this machine back."""
    ends_s: float = 0.0
    """When it takes this machine back, by the machine's uptime."""
    rebalance: str = ""
    """Since when it recommends leaving this machine."""
    at: str = ""
    """When this node heard of the newest of both."""


class SpotMarket:
    """Asks for AWS's notices as long as this is a spot machine; `notices` has the latest ones."""

    def __init__(
        self,
        page: Callable[[str], Page],
        uptime_s: Callable[[], float],
        sleep: Callable[[float], None],
        known: SpotNotices,
    ) -> None:
        self.page = page
        self.uptime_s = uptime_s
        self.sleep = sleep
        self.notices = known
        self.is_spot = False
        """Whether AWS has said that this is a spot machine."""

    def start(self) -> None:
        """Asks in a thread, so that the watch never waits for an answer."""
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        """Asks again and again; returns when AWS says that this is no spot machine."""
        goes_on = True
        while goes_on:
            try:
                goes_on = self.look()
            except Exception:  # noqa: BLE001  # no usable answer: what was known still holds
                pass
            if goes_on:
                self.sleep(POLL_S if self.is_spot else RETRY_S)

    def look(self) -> bool:
        """Asks for the notices that are due; False when AWS says that this is not a spot machine. Raises OSError."""
        if not self.is_spot:
            market = (self.page(MARKET).text or "").strip()
            self.is_spot = market == "spot"
            if not self.is_spot:
                return market not in NOT_SPOT  # anything else is no answer: asked again
        self.notices = updated(self.notices, self.page(ACTION), self.page(REBALANCE), self.uptime_s())
        return True


def updated(before: SpotNotices, action: Page, rebalance: Page, uptime_s: float) -> SpotNotices:
    """The notices with these answers added. A recommendation stays, an interruption may be taken back."""
    ends = before.ends
    if action.text is None:
        ends = ""
    else:
        row = _row(action.text)
        if isinstance(row.get("action"), str) and row["action"] not in ("", "none"):
            ends = _instant(row.get("time"), action.at_s) or before.ends or _stamp(action.at_s + NOTICE_S)
    since = before.rebalance
    if rebalance.text is not None and not since:
        row = _row(rebalance.text)
        since = (_instant(row.get("noticeTime"), rebalance.at_s) or _stamp(rebalance.at_s)) if row else ""
    if (ends, since) == (before.ends, before.rebalance):
        return before
    ends_s = before.ends_s
    if ends != before.ends:
        ends_s = uptime_s + epoch(ends) - action.at_s if ends else 0.0
    return SpotNotices(ends, ends_s, since, _stamp(action.at_s) if ends or since else "")


def _row(text: str) -> Dict[str, Any]:
    """The JSON object, empty where it is none."""
    try:
        row = parsed(text, LONGEST_PAGE, MOST_BRACKETS)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _instant(text: Any, now_s: float) -> str:
    """The instant, as this module writes it; empty where it cannot be read, or is nowhere near now."""
    try:
        at_s = epoch(text)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return ""
    return _stamp(at_s) if -PAST_S <= at_s - now_s <= AHEAD_S else ""


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(int(at_s), timezone.utc).strftime(STAMP)
