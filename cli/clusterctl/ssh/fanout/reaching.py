"""Makes a logged-in link: each phase has its own deadline, and only the declared host key is accepted."""

from __future__ import annotations

import errno
import importlib
import os
import socket
import time
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from clusterctl.ssh.connect_failures import (
    TurnedAway,
    asked_again_at,
    broken_key_exchange,
    closed_unheard,
    connect_failure,
    endless_key_exchange,
    in_seconds,
    no_answer,
    no_greeting,
    not_let_in,
    refused,
    unknown_key_type,
    unreachable,
)
from clusterctl.ssh.deadlines import Clock, Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.dialling import Dialled, begun
from clusterctl.ssh.fanout.event_loop import Waiting
from clusterctl.ssh.fanout.libssh2 import Libssh2Error
from clusterctl.ssh.fanout.link import Late, Link
from clusterctl.ssh.fanout.resolving import addresses
from clusterctl.ssh.host_key import refuse_other_host_key, signature_algorithms
from clusterctl.ssh.keys.login_keys import LoginKey, LoginKeys
from clusterctl.ssh.shared_session_argv import with_opening
from clusterctl.ssh.target import Target

if TYPE_CHECKING:
    from clusterctl.ssh.proxy import Proxy

COMPLAINT_S = 0.2
"""How long to wait for a proxy whose connection has failed, since it may say why."""
HUNG_UP_S = 0.1
"""How long a proxy has to end by itself once nobody is at its other end; then it is told to end."""
SESSION_WORDS = "Starting session with SessionId:"
KEX_FAILURE, METHOD_NOT_SUPPORTED, KEY_REFUSED = -5, -33, {-16, -18, -19, -48}


def reach(
    target: Target, keys: LoginKeys, deadlines: Deadlines, dialled: Dialled | None
) -> Generator[Waiting, bool, Link]:
    """A link to the target, the host's key checked, the person logged in. Raises NodeFailure.

    `dialled` may have a connection under way already.
    """
    deadlines = with_opening(deadlines, target.proxy_argv)
    clock = Clock(deadlines.total_s)
    link = yield from reach_host(target, deadlines, clock, dialled)
    yield from _closed_on_failure(link, _log_in(link, keys, clock.ends_at(deadlines.login_s)))
    link.watch()
    return link


def another_link(target: Target, keys: LoginKeys, usual: Deadlines, ends_at: float) -> Generator[Waiting, bool, Link]:
    """Another connection, for a watcher whose server allows one session for each connection. Raises NodeFailure."""
    try:
        left_s = min(usual.total_s, ends_at - time.monotonic())
        return (yield from reach(target, keys, replace(usual, total_s=left_s), None))
    except NodeFailure as e:
        message = (
            f"{target.name} allows one session at a time, and no second connection ({e.message}): "
            f"the command is ended there within {usual.silence_s:g} s"
        )
        raise NodeFailure(e.kind, message, phase="command") from e


def reach_host(
    target: Target, deadlines: Deadlines, clock: Clock, dialled: Dialled | None = None
) -> Generator[Waiting, bool, Link]:
    """A link to the target, the host's key checked, nobody logged in; tried again if it is turned away.

    Raises NodeFailure.
    """
    while True:
        try:
            return (yield from _reach_once(target, deadlines, clock, dialled))
        except TurnedAway:
            again_at = asked_again_at(clock)
            if again_at is None:
                raise
            yield Waiting(until=again_at)


def _reach_once(
    target: Target, deadlines: Deadlines, clock: Clock, dialled: Dialled | None
) -> Generator[Waiting, bool, Link]:
    proxy = None if target.proxy_argv is None else _started(target.proxy_argv)
    try:
        connection = proxy.socket if proxy is not None else (yield from _connected(target, deadlines, clock, dialled))
        link = Link(target, connection, proxy, silence_s=deadlines.silence_s)
    except BaseException:
        if proxy is not None:
            proxy.close()
        raise
    yield from _closed_on_failure(link, _check_host_key(link, deadlines, clock))
    return link


def _started(proxy_argv: tuple[str, ...]) -> Proxy:
    """The running proxy command. Raises NodeFailure when there is no such program."""
    proxy: Proxy = importlib.import_module("clusterctl.ssh.proxy").Proxy(proxy_argv)
    return proxy


def _closed_on_failure(link: Link, steps: Generator[Waiting, bool, None]) -> Generator[Waiting, bool, None]:
    """Takes the steps on the link, and closes it when one fails; if the proxy said something, that is the reason."""
    try:
        yield from steps
    except NodeFailure as e:
        complaint = None
        if e.kind in {"lost", "timeout"}:
            try:
                yield from link.await_proxy_end(COMPLAINT_S)
            except BaseException:  # the loop ends
                link.close()
                raise
            complaint = link.complaint()
        yield from let_go(link)
        if complaint is not None:
            raise connect_failure(link.target, complaint) from e
        raise
    except BaseException:
        link.close()
        raise


def _check_host_key(link: Link, deadlines: Deadlines, clock: Clock) -> Generator[Waiting, bool, None]:
    yield from _exchange_keys(link, deadlines, clock)
    refuse_other_host_key(link.target, link.session.host_key())


def let_go(link: Link) -> Generator[Waiting, bool, None]:
    """Closes the link after the event loop has forgotten its descriptor, whose number may come again."""
    try:
        yield Waiting(until=0.0)
        link.hang_up()
        yield from link.await_proxy_end(HUNG_UP_S)
    finally:
        link.close()


def _connected(
    target: Target, deadlines: Deadlines, clock: Clock, dialled: Dialled | None
) -> Generator[Waiting, bool, socket.socket]:
    """A connected socket, to the first of the target's addresses that answers."""
    ends_at = clock.ends_at(deadlines.connect_s)
    waited_s = clock.left_s(deadlines.connect_s)
    failure = NodeFailure("unreachable", f"{target.host} has no address")
    for family, address in (yield from addresses(target, ends_at)):
        early = None if dialled is None else dialled.take(target)
        connection, code = begun(family, address) if early is None else (early, errno.EINPROGRESS)
        try:
            while code == errno.EINPROGRESS:
                yield Waiting(descriptor=connection.fileno(), for_writing=True, until=ends_at)
                code = _progress(connection)
                if code == errno.EINPROGRESS and time.monotonic() >= ends_at:
                    code = errno.ETIMEDOUT
        except BaseException:
            connection.close()
            raise
        if code == 0:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection
        yield Waiting(until=0.0)
        connection.close()
        failure = _no_connection(target, code, waited_s)
    raise failure


def _progress(connection: socket.socket) -> int:
    """0 when connected, EINPROGRESS while it is being tried, else the error's number."""
    code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code != 0:
        return code
    try:
        connection.getpeername()
    except OSError:
        return errno.EINPROGRESS
    return 0


def _no_connection(target: Target, code: int, waited_s: float) -> NodeFailure:
    if code == errno.ECONNREFUSED:
        return refused(target)
    if code == errno.ETIMEDOUT:
        return no_answer(target, in_seconds(waited_s))
    return unreachable(target, os.strerror(code))


def _exchange_keys(link: Link, deadlines: Deadlines, clock: Clock) -> Generator[Waiting, bool, None]:
    target, session = link.target, link.session
    # Only the declared kind of key is asked for: a host with several kinds must show this one.
    try:
        session.want_host_key(",".join(signature_algorithms(target.host_key_type)))
    except Libssh2Error as e:
        raise unknown_key_type(target) from e
    greeting_ends_at, greeting_s = clock.ends_at(deadlines.greeting_s), clock.left_s(deadlines.greeting_s)
    ends_at = clock.ends_at(deadlines.greeting_s + deadlines.key_exchange_s)
    first_words = b""

    def step() -> int:
        nonlocal first_words
        if not first_words:
            first_words = _peeked(link.socket)
        return session.handshake()

    try:
        while not session.has_greeting():
            if step() == 0:
                return
            if not session.has_greeting():
                yield from link.until_ready(greeting_ends_at)
        yield from link.until_done(step, ends_at)
    except Late as e:
        if not session.has_greeting():
            raise no_greeting(target, in_seconds(greeting_s)) from e
        raise endless_key_exchange(target) from e
    except Libssh2Error as e:
        raise _no_handshake(link, first_words, e) from e


def _peeked(connection: socket.socket) -> bytes:
    """The first bytes that the server sent, left where they are; empty while there are none."""
    try:
        return connection.recv(80, socket.MSG_PEEK)
    except OSError:
        return b""


def _no_handshake(link: Link, first_words: bytes, error: Libssh2Error) -> NodeFailure:
    target = link.target
    if not link.session.has_greeting():
        line = first_line(first_words)
        if line and not line.startswith("SSH-"):
            return NodeFailure("protocol", f"{target.place} is no SSH server: it says {line!r}", phase="greeting")
        return closed_unheard(target)
    if error.code in {KEX_FAILURE, METHOD_NOT_SUPPORTED}:
        message = (
            f"{target.name} ({target.place}) has no {target.host_key_type} host key, and that is the declared one; "
            "or it has no SSH algorithm in common with clusterctl"
        )
        return NodeFailure("host-key", message, phase="key exchange")
    return broken_key_exchange(target, error)


def first_line(words: bytes) -> str:
    """The first line that is not the Session Manager plugin's own; empty where nothing else was said.

    The plugin says it before it has a connection to the node (aws/session-manager-plugin, session.go; 2026-11-26).
    """
    lines = words.decode(errors="replace").splitlines()
    return next((line for line in lines if line and not line.startswith(SESSION_WORDS)), "")


def _log_in(link: Link, keys: LoginKeys, ends_at: float) -> Generator[Waiting, bool, None]:
    target = link.target
    for key in keys.keys:
        try:
            yield from link.until_done(lambda key=key: _try_key(link, key), ends_at)  # type: ignore[misc]
            return
        except Late as e:
            message = f"{target.place} did not answer the login in time"
            raise NodeFailure("timeout", message, phase="login") from e
        except Libssh2Error as e:
            if e.code not in KEY_REFUSED:
                raise NodeFailure("lost", f"{target.place} broke off the login ({e})", phase="login") from e
    raise not_let_in(target, keys.described)


def _try_key(link: Link, key: LoginKey) -> int:
    user = link.target.user.encode()
    if key.private is not None:
        return link.session.log_in_with_key(user, key.private)
    return link.session.log_in_with_agent(user, key.public, key.agent_socket)
