"""`up --retry-until-up`: tries again while AWS has no capacity, for as long as was asked; nothing bills in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl_infra.config.stack import NAMESPACE
from clusterctl_infra.errors import NoCapacity, NotBegun

from clusterctl.lifecycle.up import bring_up
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.output import Output
from clusterctl.text.instant import utc_now
from clusterctl.text.quantities import clock, duration

BLOCK_KEY = f"{NAMESPACE}block:".encode()
FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 900.0
"""A choice: each try makes and undoes a network, and capacity comes back in quarters of an hour, not in seconds."""


def bring_up_in_time(
    request: UpRequest,
    output: Output,
    environ: Mapping[str, str],
    *,
    for_s: float,
    attempt: Callable[[UpRequest, Output, Mapping[str, str]], None] = bring_up,
    monotonic: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Brings the stack up; no try begins later than `for_s` after the first. Raises the last try's NoCapacity.

    Another try follows only if nothing is left of the one before. A person who has agreed once is not asked again,
    unless the stack's files have changed meanwhile; in a try that ended before its question nobody agreed to anything.
    """
    began, pause_s = monotonic(), FIRST_PAUSE_S
    agreed_without_asking = request.is_agreed
    agreed: list[bool] = []
    request = replace(request, on_agreed=lambda: agreed.append(True))
    while True:
        files_before = yaml_contents(request.stack_dir)
        try:
            attempt(request, output, environ)
            return
        except NoCapacity as e:
            left_s, now = for_s - (monotonic() - began), wall_clock()
            wait_s = max(pause_s, until_it_begins_s(e, now=now))
            if left_s < wait_s:
                raise
            at, end = (clock(now + timedelta(seconds=ahead_s), now) for ahead_s in (wait_s, left_s))
            output.note(e.message)
            output.note(f"  next try in {duration(timedelta(seconds=wait_s))}, at {at}; the last begins before {end}")
        sleep(wait_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        if yaml_contents(request.stack_dir) != files_before:
            agreed.clear()
        request = replace(request, is_agreed=agreed_without_asking or bool(agreed))


def until_it_begins_s(refusal: NoCapacity, *, now: datetime) -> float:
    """Seconds until the reservation or block begins; 0 if that is not why there is no capacity, or it is not known."""
    begins_at = refusal.begins_at if isinstance(refusal, NotBegun) else None
    return 0.0 if begins_at is None else max(0.0, (begins_at - now).total_seconds())


def yaml_contents(stack_dir: Path) -> tuple[tuple[str, bytes], ...]:
    """The names and contents of the stack's YAML files, which decide what a person agrees to.

    The line that names a block bought meanwhile is left out.
    """
    files = sorted(path for path in stack_dir.glob("*.yaml") if path.is_file())
    return tuple((path.name, _without_block(path.read_bytes())) for path in files)


def _without_block(content: bytes) -> bytes:
    return b"".join(line for line in content.splitlines(keepends=True) if not line.strip().startswith(BLOCK_KEY))
