"""Some members of a job without ranks, in one process: `python -m bench.light_supervisors PORT MEMBERS FIRST COUNT`.

Prints, by the clock that all processes of this computer share: `ready`, `started SECONDS` once the last of them was
told to start, and `finished SECONDS` once the last of them knows how the job ended. A line on stdin cancels the job.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any  # what a job's spec holds

from clusterctl.on_node.job.member import MemberLink

from bench.waiting import allow_many_connections

KEY = b"a key of the benchmark's own!!!!"
STACK_BYTES = 256 * 1024
POLL_S = 0.005
TIMEOUT_S = 120.0


def spec_of(port: int, members: int) -> dict[str, Any]:
    """The spec of a job of `members` nodes, all of them this computer."""
    rows = [{"slot": slot, "name": f"n-{slot}", "address": "127.0.0.1", "nproc": 1} for slot in range(members)]
    known = {"job": "light", "attempt": 1, "grace_s": 1.0, "timeout_s": None}
    return {**known, "channel_port": port, "members": rows}


def main(port: int, members: int, first: int, count: int) -> None:
    allow_many_connections()
    threading.stack_size(STACK_BYTES)
    spec = spec_of(port, members)
    links = [MemberLink(spec, slot, KEY) for slot in range(first, first + count)]
    for link in links:
        link.start()
    _wait_until(links, lambda link: link.silent_s() < TIMEOUT_S and bool(link.directive))
    print("ready", flush=True)
    _wait_until(links, lambda link: link.directive["do"] == "start")
    print("started", time.monotonic(), flush=True)
    for link in links:
        link.say(phase="running")
    threading.Thread(target=_cancel_on_a_line, args=(links[0],), daemon=True).start()
    _wait_until(links, _is_told_the_end)
    print("finished", time.monotonic(), flush=True)
    for link in links:
        link.say(knows_end=True)
    time.sleep(1.0)  # so that their last messages arrive


def _wait_until(links: Sequence[MemberLink], is_done: Callable[[MemberLink], bool]) -> None:
    until_s = time.monotonic() + TIMEOUT_S
    left = list(links)
    while left := [link for link in left if not is_done(link)]:
        if time.monotonic() > until_s:
            raise TimeoutError(f"{len(left)} of {len(links)} members still wait")
        time.sleep(POLL_S)


def _is_told_the_end(link: MemberLink) -> bool:
    """Whether a member knows the job's end. One that is to stop has no ranks, so it reports at once that they ended."""
    if link.directive["do"] == "stop":
        link.say(phase="ended")
    return bool(link.directive["do"] == "finish")


def _cancel_on_a_line(link: MemberLink) -> None:
    sys.stdin.readline()
    link.say(is_cancelled=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
