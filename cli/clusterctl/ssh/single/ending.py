"""Ending what runs on a connection: by a second session, since a closed channel alone ends no command.

SSH's own signal request is of no use: OpenSSH's sshd refuses it to root, and paramiko cannot send it.
"""

from __future__ import annotations

import time

import paramiko

from clusterctl.ssh.single.channel import drained

GRACE_S = 1.0
"""How long a command has to end by itself after SIGTERM, before SIGKILL."""
MOST_S = GRACE_S + 4.0
"""How long all of it may take on a node under load; it ends as soon as the commands have."""

# All sessions of a connection are children of one sshd process, each the leader of its process group. Plain sh and
# /proc: a node need not have procps. The script runs to its end even when the connection is closed under it. So its
# parent may be gone before it starts, and it is then a child of init: in that case, or under anything but an sshd, it
# touches nothing. The groups are listed once: when the connection has gone, they are init's children too.
_SCRIPT = """exec sh -c '
is_sshd() { read -r c 2>/dev/null </proc/$1/comm && case $c in sshd*) true;; *) false;; esac; }
[ "$PPID" -gt 1 ] && is_sshd "$PPID" || exit 0
others() {
  for f in /proc/[0-9]*/stat; do
    read -r l 2>/dev/null <$f || continue
    set -- ${l##*) }
    p=${f#/proc/}; p=${p%/stat}
    [ "$2" = "$PPID" ] && [ "$3" = "$p" ] && [ "$p" != $$ ] && [ "$1" != Z ] && ! is_sshd "$p" && echo "$p"
  done
}
groups=$(others)
for p in $groups; do kill -s TERM -- "-$p"; done
for i in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for p in $groups; do kill -s 0 -- "-$p" && left="$left $p"; done
  [ -z "$left" ] && exit 0
  sleep 0.1
done
for p in $left; do kill -s KILL -- "-$p"; done
' 2>/dev/null"""


def end_commands(transport: paramiko.Transport) -> None:
    """Ends every command on this connection: SIGTERM to its process group, SIGKILL after the grace.

    A process that left its group (setsid, nohup with its own session) stays. Without a connection it does nothing.
    """
    ends_at = time.monotonic() + MOST_S
    try:
        with transport.open_session(timeout=MOST_S) as channel:
            channel.exec_command(_SCRIPT)
            drained(channel, _nowhere, _nowhere, ends_at, is_silent=lambda: False)
    except (EOFError, OSError, paramiko.SSHException):
        return


def _nowhere(chunk: bytes) -> None:
    """Drops what the script says."""
