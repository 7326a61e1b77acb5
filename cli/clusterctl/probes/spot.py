"""Whether AWS wants a spot machine back, as the node's status file says."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl_infra.strict_json import NotAsExpected, parsed_object

from clusterctl.probes.probe import Probe, ProbeUnreadable


@dataclass(frozen=True, kw_only=True)
class SpotReading:
    """AWS's notice to a spot machine; both fields are None if there is none, as on a machine that is not spot."""

    notice: str | None
    """`interruption`, or `rebalance` where AWS only recommends leaving the machine."""
    time: str | None
    """When AWS takes it back, or since when it recommends leaving it; ISO, in UTC."""


def parse_spot(text: str) -> SpotReading:
    """The notice in the node's status. Raises ProbeUnreadable."""
    if not text.strip():  # a node that has not booted yet
        return SpotReading(notice=None, time=None)
    try:
        notice = parsed_object(text).fields_or_none("notice")
        if notice is None:
            return SpotReading(notice=None, time=None)
        notice.moment_or_none("time")  # refuses what is no time
        return SpotReading(notice=notice.text("kind", most=100), time=notice.text_or_none("time"))
    except NotAsExpected as e:
        raise ProbeUnreadable(f"status.json: {e}") from e


SPOT = Probe(
    name="spot",
    meaning="whether AWS wants a spot machine back",
    command="cat /etc/clusterctl/status.json 2>/dev/null; true",
    limit_s=5,
    parse=parse_spot,
)
