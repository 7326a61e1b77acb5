"""How a job ended, from how its ranks did: the rank that caused the failure is told apart from its victims. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"
TIMED_OUT, BY_DEADLINE, LOST = "timed out", "ended by deadline", "lost"
FINAL = (SUCCEEDED, FAILED, CANCELLED, TIMED_OUT, BY_DEADLINE, LOST)
WAITING, PREPARING, STARTING, RUNNING, STOPPING = "waiting", "preparing", "starting", "running", "stopping"
PLAIN_CANCEL = "it was cancelled"
"""The cause that says no more than the state `cancelled` does."""
STATES = (WAITING, PREPARING, STARTING, RUNNING, STOPPING, *FINAL)

EXIT_CODES = {SUCCEEDED: 0, CANCELLED: 130, TIMED_OUT: 124, BY_DEADLINE: 124, LOST: 255}
VICTIMS_SAY = (
    "connection closed by peer",
    "closed by remote peer",
    "remote process exited or there was a network error",  # ncclGetErrorString(ncclRemoteError), which JAX prints
    "connection reset by peer",
    "connection refused",
    "broken pipe",
    "socket timeout",
    "ncclremoteerror",
    "ncclsystemerror",
    "nccl error",
    "watchdog caught collective operation timeout",
    "failed to recv",
    "gloo/transport",
    "another task died",
    "collective ops is aborted by",
)
"""What ranks print when a peer has gone: torch 2.2 to 2.15 with NCCL and gloo; last, JAX 0.10 and TensorFlow 2.21."""
OWN_FAULT_SAYS = ("ncclunhandledcudaerror", "ncclinvalidusage", "ncclinvalidargument")
"""What stands beside `NCCL error` where the rank's own GPU or program is at fault (ncclResult_t in NCCL's user guide).

Seen with torch 2.11 and NCCL 2.28 on an H100, 2026-11-26: no memory left on the GPU, and two ranks on one.
"""


def is_victim(failure: Mapping[str, Any]) -> bool:
    """Whether the rank ended because another one had."""
    if failure.get("is_vanished"):
        return True
    text = "\n".join([*failure.get("lines", ()), str(failure.get("error") or "")]).lower()
    return not any(words in text for words in OWN_FAULT_SAYS) and any(words in text for words in VICTIMS_SAY)


def culprit(failures: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first to fail of those that are nobody's victims; the first of all where all are. None: nobody failed."""
    return min(failures, key=lambda failure: (is_victim(failure), float(failure["at_s"])), default=None)


def outcome(state: str, why: str, failures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """State, cause and exit code. `failures` happened before anybody was told to stop."""
    failures = list(failures)
    if state != FAILED:
        return {"state": state, "cause": why, "exit_code": EXIT_CODES[state], "failure": None}
    worst = culprit(failures)
    if worst is None:
        return {"state": FAILED, "cause": why, "exit_code": 1, "failure": None}
    code = 128 + int(worst["signal"]) if worst.get("signal") else int(worst.get("code") or 1)
    others = len(failures) - 1
    cause = describe(worst) + ("" if not others else "; %d more failed with it" % others)
    return {"state": FAILED, "cause": cause, "exit_code": code, "failure": dict(worst)}


def describe(failure: Mapping[str, Any]) -> str:
    """`Node 1 (train-1): rank 3 (local rank 1) exited with code 7`."""
    where = "Node %s (%s): " % (failure["slot"], failure["name"])
    if failure.get("rank") is None:
        return where + str(failure["lines"][-1])
    who = "rank %s (local rank %s)" % (failure["rank"], failure["local_rank"])
    if failure.get("is_vanished"):
        return "%s%s ended without a report: it was killed, or its disk was full" % (where, who)
    if failure.get("is_out_of_memory"):
        return "%s%s was killed: the node had no memory left" % (where, who)
    if failure.get("signal"):
        return "%s%s was killed by signal %s" % (where, who, failure["signal"])
    return "%s%s exited with code %s" % (where, who, failure["code"])
