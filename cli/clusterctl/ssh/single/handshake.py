"""Makes a logged-in SSH transport: each phase has its own deadline, and only the declared host key is accepted."""

from __future__ import annotations

import logging
import socket
import time

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from clusterctl.ssh.connect_failures import (
    broken_key_exchange,
    closed_unheard,
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
from clusterctl.ssh.host_key import refuse_other_host_key, signature_algorithms
from clusterctl.ssh.keys.login_keys import LoginKey, LoginKeys
from clusterctl.ssh.proxy import Proxy
from clusterctl.ssh.target import Target

GREETING = b"SSH-"
MOST_BEFORE_GREETING_BYTES = 4096
POLL_S = 0.01
"""Between two checks for the rest of a greeting of which only the first bytes have come."""

# paramiko's thread logs what it raises as well; without a handler that ends up on the person's stderr.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


def open_socket(target: Target, proxy: Proxy | None, timeout_s: float) -> socket.socket:
    """A connected socket, through the proxy if there is one. Raises NodeFailure."""
    if proxy is not None:
        return proxy.socket
    try:
        connection = socket.create_connection((target.host, target.port), timeout=timeout_s)
    except TimeoutError as e:
        raise no_answer(target, in_seconds(timeout_s)) from e
    except ConnectionRefusedError as e:
        raise refused(target) from e
    except OSError as e:
        raise unreachable(target, e.strerror or str(e)) from e
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def handshake(
    connection: socket.socket, target: Target, keys: LoginKeys, deadlines: Deadlines, clock: Clock
) -> paramiko.Transport:
    """A transport on `connection`, the host's key checked, the person logged in.

    Raises NodeFailure, and then has closed the transport; the caller closes the proxy.
    """
    if target.proxy_argv is not None:
        skip_to_greeting(connection, clock.left_s(deadlines.greeting_s))
    transport = paramiko.Transport(connection)
    try:
        _exchange_keys(transport, target, deadlines, clock)
        refuse_other_host_key(target, transport.get_remote_server_key().asbytes())
        _log_in(transport, target, keys, clock.left_s(deadlines.login_s))
    except BaseException:
        transport.close()
        raise
    return transport


def skip_to_greeting(connection: socket.socket, within_s: float) -> None:
    """Reads the lines that a proxy command says before the server speaks; returns at the greeting, or when it is late.

    The Session Manager plugin says `Starting session with SessionId: …` before it has a connection to the node (its
    session.go, Execute), and paramiko gives each line after the first one 2 s (Transport._check_banner in 3.5 and 4);
    2026-11-26.
    """
    ends_at, is_line_start = time.monotonic() + within_s, True
    for _ in range(MOST_BEFORE_GREETING_BYTES):
        connection.settimeout(max(POLL_S, ends_at - time.monotonic()))
        try:
            while is_line_start and len(seen := connection.recv(len(GREETING), socket.MSG_PEEK)) < len(GREETING):
                if not seen or not GREETING.startswith(seen) or time.monotonic() >= ends_at:
                    break
                time.sleep(POLL_S)
            if is_line_start and (not seen or seen == GREETING):
                return
            is_line_start = connection.recv(1) in (b"", b"\n")
        except OSError:
            return


def _exchange_keys(transport: paramiko.Transport, target: Target, deadlines: Deadlines, clock: Clock) -> None:
    greeting_s = clock.left_s(deadlines.greeting_s)
    both_s = clock.left_s(deadlines.greeting_s + deadlines.key_exchange_s)
    transport.banner_timeout = greeting_s
    transport.handshake_timeout = deadlines.key_exchange_s
    # Only the declared kind of key is asked for: a host with several kinds must show this one.
    try:
        transport.get_security_options().key_types = signature_algorithms(target.host_key_type)
    except ValueError as e:
        raise unknown_key_type(target) from e
    try:
        transport.start_client(timeout=both_s)
    except IncompatiblePeer as e:
        raise _incompatible(target, e) from e
    except (paramiko.SSHException, EOFError, OSError) as e:
        raise _no_handshake(transport, target, greeting_s, both_s, clock, e) from e
    if not transport.initial_kex_done:
        raise _no_handshake(transport, target, greeting_s, both_s, clock, None)


def _no_handshake(
    transport: paramiko.Transport,
    target: Target,
    greeting_s: float,
    both_s: float,
    clock: Clock,
    error: Exception | None,
) -> NodeFailure:
    if not transport.remote_version:
        if error is None or isinstance(error.__context__, TimeoutError) or clock.elapsed_s() >= greeting_s:
            return no_greeting(target, in_seconds(greeting_s))
        if "protocol version" in str(error):
            return NodeFailure("protocol", f"{target.place} is no SSH server: {error}", phase="greeting")
        return closed_unheard(target)
    if error is None or clock.elapsed_s() >= both_s:
        return endless_key_exchange(target)
    return broken_key_exchange(target, error)


def _incompatible(target: Target, error: Exception) -> NodeFailure:
    if "host key" in str(error):
        message = f"{target.name} ({target.place}) has no {target.host_key_type} host key, and that is the declared one"
        return NodeFailure("host-key", message, phase="key exchange")
    return NodeFailure("protocol", f"{target.place}: no common SSH algorithms ({error})", phase="key exchange")


def _log_in(transport: paramiko.Transport, target: Target, keys: LoginKeys, timeout_s: float) -> None:
    transport.auth_timeout = timeout_s
    for key in paramiko_keys(keys):
        try:
            if not transport.auth_publickey(target.user, key):
                return
        except paramiko.AuthenticationException as e:
            if "timeout" in str(e).lower():
                message = f"{target.place} did not answer the login within {in_seconds(timeout_s)}"
                raise NodeFailure("timeout", message, phase="login") from e
            if not transport.is_active():
                break
        except (paramiko.SSHException, EOFError, OSError) as e:
            raise NodeFailure("lost", f"{target.place} broke off the login ({e})", phase="login") from e
    raise not_let_in(target, keys.described)


def paramiko_keys(keys: LoginKeys) -> list[paramiko.PKey]:
    """The login keys as paramiko wants them, in order, without those that the agent has dropped. Raises NodeFailure."""
    held: dict[bytes, paramiko.PKey] = {}
    if any(key.path is None for key in keys.keys):
        held = {key.asbytes(): key for key in paramiko.Agent().get_keys()}
    found = (held.get(key.public) if key.path is None else _parsed(key) for key in keys.keys)
    return [key for key in found if key is not None]


def _parsed(key: LoginKey) -> paramiko.PKey:
    assert key.path is not None
    try:
        return paramiko.PKey.from_path(key.path)
    except (OSError, ValueError, paramiko.SSHException) as e:
        raise NodeFailure("key", f"{key.path} cannot be read as a private key ({e})") from e
