"""Failures to connect to a node, in the same words for one node and for many."""

from __future__ import annotations

import math
import random
import time

from clusterctl.ssh.deadlines import Clock
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.target import Target

REFUSED_BEHIND = "Stdio forwarding request failed"
"""What `ssh -W` says where the server at its other end could not connect (OpenSSH 9.2, mux.c, 2026-11-26)."""

TURNED_AWAY = "kex_exchange_identification: "
"""What ssh prints, before its last line, when a server closes the connection before it has identified itself. A
bastion's sshd does so to some of many connections that come at once: MaxStartups, by default 10:30:100 (sshd_config(5),
OpenSSH 9.2; 2026-11-26)."""

AGAIN_S = (0.2, 1.0)
"""A connection that was turned away is tried again after a random time in this range, so that not all come at once."""


class TurnedAway(NodeFailure):
    """The server that leads to the node closed the connection at once; it may take the next one."""


def asked_again_at(clock: Clock) -> float | None:
    """The monotonic time at which to try again after being turned away; None if the clock has run out by then."""
    again_at = time.monotonic() + random.uniform(*AGAIN_S)
    return again_at if again_at < clock.ends_at(math.inf) else None


def connect_failure(target: Target, complaint: str) -> NodeFailure:
    """The failure of a connection whose proxy command ended with `complaint`, which may begin with the place."""
    if complaint.startswith(TURNED_AWAY):
        reason = "the host or program on the way there closes connections at once, as sshd does beyond MaxStartups"
        return TurnedAway("proxy", f"no way to {target.place}: {reason} ({complaint.removeprefix(TURNED_AWAY)})")
    if complaint.startswith(REFUSED_BEHIND):
        return NodeFailure(
            "refused", f"{target.place} does not answer the node that relays to it: no SSH server there (yet)"
        )
    return NodeFailure("proxy", f"no way to {target.place}: {complaint.removeprefix(f'{target.place}: ')}")


def no_greeting(target: Target, waited: str) -> NodeFailure:
    """The failure of a connection on which no greeting comes; behind a proxy it may never have been made."""
    is_direct = target.proxy_argv is None
    way = "takes connections but says nothing" if is_direct else "says nothing through the proxy command"
    return NodeFailure("timeout", f"{target.place} {way} (waited {waited})", phase="greeting")


def refused(target: Target) -> NodeFailure:
    """The failure of a connection that the machine refuses."""
    return NodeFailure("refused", f"{target.place} refuses connections: no SSH server there (yet)")


def no_answer(target: Target, waited: str) -> NodeFailure:
    """The failure of a connection attempt that nothing answered in time."""
    return NodeFailure("timeout", f"no answer from {target.place} within {waited}")


def unreachable(target: Target, why: str) -> NodeFailure:
    """The failure of a connection that this computer's system cannot make; `why` is what the system says."""
    return NodeFailure("unreachable", f"{target.place} cannot be reached: {why}")


def closed_unheard(target: Target) -> NodeFailure:
    """The failure of a connection that ended before the server had sent anything."""
    return NodeFailure("lost", f"{target.place} closed the connection without sending anything", phase="greeting")


def unknown_key_type(target: Target) -> NodeFailure:
    """The failure of a host whose declared key is of a type that our SSH libraries do not know."""
    return NodeFailure("host-key", f"{target.name}: host keys of type {target.host_key_type} are unknown")


def endless_key_exchange(target: Target) -> NodeFailure:
    """The failure of a key exchange that did not end in time."""
    return NodeFailure("timeout", f"{target.place} began but never finished the key exchange", phase="key exchange")


def broken_key_exchange(target: Target, error: object) -> NodeFailure:
    """The failure of a key exchange that the other side ended."""
    return NodeFailure("lost", f"{target.place} broke off the key exchange ({error})", phase="key exchange")


def not_let_in(target: Target, keys: str) -> NodeFailure:
    """The failure of a login in which the node refused every key; `keys` describes them in words."""
    return NodeFailure("auth", f"{target.name} does not let {target.user} in with {keys}", phase="login")


def in_seconds(timeout_s: float) -> str:
    """The time in words: `1.5 s`."""
    return f"{round(timeout_s, 1):g} s"
