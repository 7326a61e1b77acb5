"""The text that a node's shell runs for a command, so that the command ends when clusterctl does.

Closing an SSH channel ends nothing on the node, and a connection whose network was cut is not even closed there. So
a small watcher in the command's own process group reads beats from the channel's input, and ends the group when
they stop. A command that reads input itself leaves no room for beats: its watcher has a channel of its own, and the
first line on the command's stderr says which group to watch. That watcher comes two round trips later. Until then a
place holder waits, which reads no beats: it ends the group after the same silence, unless the watcher ends it first.

All of this text is in the argv of the node's shell, and `pkill -f` and `pgrep -f` on the node search argvs. So every
character is escaped: a search for a word of the command finds what the command has started, and neither its shell nor
the watcher. The text could come by the input instead, but that would cost a round trip.

For a POSIX login shell (bash, dash, zsh, ksh, busybox). What left the session (setsid, a daemon) is left alone.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_FILE = "/etc/clusterctl/env"
"""A node's variables, in words that every shell reads."""
GRACE_S = 1
"""How long a command has to end by itself after SIGTERM, before SIGKILL."""
MOST_S = GRACE_S + 1.5
"""How long to wait for an interrupted command: for its own end, SIGKILL, and the network."""
BEAT = b"\n"
BEATS = 3
"""How many beats may get lost until the watcher believes that clusterctl is gone."""

LONGEST_ESCAPED = 8192
"""Longer texts, which are programs of ours, are not escaped but quoted: escaping would double them, and they have to
fit into an SSH packet (35,000 bytes, RFC 4253)."""

_MARK = "clusterctl-group"
_MARKED = rb"clusterctl-group (\d+) (\d+)\n"
# Sudo keeps the group; without a terminal it makes no new session (sudoers(5), use_pty, checked 2026-11-21).
# It starts the command without the session's variables (sudoers(5), env_reset): root reads the node's own again.
_NODE_VARIABLES = f"if [ -r {ENVIRONMENT_FILE} ]; then set -a; . {ENVIRONMENT_FILE}; set +a; fi; "
# The person's variables, see `first_input`; without them nothing runs.
# If a line of .bashrc has read them already, the next line of the input comes here: a beat, or the command's own.
_ASKED = (
    "IFS= read -r clusterctl_exports || clusterctl_exports=; "
    'case $clusterctl_exports in "export "*) ;; *) echo "clusterctl: the values of --env did not come: '
    'does a startup file of the login shell read its input?" >&2; exit 255 ;; esac; '
)
_TAKEN = (
    'clusterctl_newline=$(printf "\\nx"); clusterctl_newline=${clusterctl_newline%x}; eval "$clusterctl_exports"; '
    "unset clusterctl_newline clusterctl_exports; "
)
# By `exec`: mksh keeps the old stdout open beside a redirection of { }, and the channel would never end.
_SILENT = ">/dev/null 2>&1"
# ksh93 makes a process for ( ) only where it must, as for a limit; without it the watcher would be the command's child.
_IN_A_PROCESS = '[ -z "$KSH_VERSION" ] || ulimit -c 0; '
_SUDO = 'exec sudo -n -- "${SHELL:-/bin/sh}" -c '
_BACKSLASHED = {code: f"\\{chr(code)}" for code in range(ord(" "), ord("~") + 1)}


@dataclass(frozen=True, kw_only=True)
class ReportedIds:
    """The process ids on the node that a command with input reports."""

    group: int
    holder: int
    """The process of place_holder.sh, which the watcher replaces."""


def guarded(line: str, *, environment: Mapping[str, str], is_sudo: bool, silence_s: float) -> bytes:
    """The text for a command without input: the channel's input is the watcher's."""
    # Started by a shell that ends at once: the watcher is then no child that a `wait` in the line would wait for.
    beside = f"( exec <&3 3<&- {_SILENT}; {_watcher(silence_s)} )"
    start = f"exec 3<&0 </dev/null; ( {_IN_A_PROCESS}{beside} & ); exec 3<&-; "
    return _text(start, line, environment, is_sudo=is_sudo)


def with_input(line: str, *, environment: Mapping[str, str], is_sudo: bool, silence_s: float) -> bytes:
    """The text for a command that reads the channel's input; it reports its group first, see `group_in`."""
    # Started as in `guarded`. Not within $(…): ksh and mksh would wait there until the holder has ended.
    holder = f"( exec </dev/null {_SILENT}; {_script('place_holder.sh', silence_s)} )"
    start = f'( {_IN_A_PROCESS}{holder} & echo "{_MARK} $clusterctl_group $!" >&2 ); '
    return _text(start, line, environment, is_sudo=is_sudo)


def first_input(*, environment: Mapping[str, str], is_sudo: bool) -> bytes:
    """The line that the text reads before anything else, with the person's variables; empty where it reads none.

    Sudo logs its arguments and every variable that it is asked to keep, so values reach root by a line of the input.
    That costs a round trip.
    """
    if not (is_sudo and environment):
        return b""
    # All in one line: the shell reads just that, byte by byte, and what follows is the watcher's or the command's.
    return os.fsencode(_exports(environment).replace("\n", "'\"$clusterctl_newline\"'") + "\n")


def watcher(reported: ReportedIds, *, is_sudo: bool, silence_s: float) -> bytes:
    """The text for the channel beside a command with input."""
    end_holder = f"kill -s KILL {reported.holder} 2>/dev/null"
    text = f"clusterctl_group={reported.group}; {end_holder}; {_watcher(silence_s)} >/dev/null"
    run = evaluated(text)
    return os.fsencode(_SUDO + shlex.quote(run) if is_sudo else run)


def evaluated(text: str) -> str:
    r"""A shell command that runs `text`: `eval \l\s` for `ls`, so that no search through argvs finds a word of it.

    A text longer than LONGEST_ESCAPED is quoted instead, and can be found.
    """
    if len(text) > LONGEST_ESCAPED:
        return f"eval {shlex.quote(text)}"
    # All but printable ASCII is quoted: a backslash would remove a newline, and break a character of several bytes.
    return "eval " + re.sub(r"[^ -~]+", _in_quotes, text.translate(_BACKSLASHED))


def _in_quotes(match: re.Match[str]) -> str:
    return f"'{match[0]}'"


def group_in(stderr: bytes) -> tuple[ReportedIds, bytes] | None:
    """The process ids that a command with input reports on stderr, and the rest of `said`; None before they come."""
    found = re.search(_MARKED, stderr)
    if found is None:
        return None
    return ReportedIds(group=int(found[1]), holder=int(found[2])), stderr[: found.start()] + stderr[found.end() :]


def _text(start: str, line: str, environment: Mapping[str, str], *, is_sudo: bool) -> bytes:
    """The text: our part on its first line, the person's in an `eval`, so the shell counts only the person's lines.

    sshd makes the login shell the leader of its group, so $$ is the group; under sudo it has to be passed on.
    """
    # A line that begins with a dash would be an option; `--` before it is a command to dash's eval (0.5.12).
    run = evaluated(f" {line}" if line.startswith("-") else line)
    if is_sudo:
        asked, taken = (_ASKED, _TAKEN) if environment else ("", "")
        ours = evaluated(f"clusterctl_group=$0; {asked}{start}{_NODE_VARIABLES}{taken}")
        command = f"{_SUDO}{shlex.quote(f'{ours}; {run}')} $$"
    else:
        command = f"{evaluated(f'clusterctl_group=$$; {start}{_exports(environment)}')}; {run}"
    return os.fsencode(command)  # the bytes that were typed, UTF-8 or not


def _exports(environment: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in environment.items())


def _watcher(silence_s: float) -> str:
    return _script("watchdog.sh", silence_s)


@functools.cache
def _script(name: str, silence_s: float) -> str:
    """The script as one line without comments and indentation, its settings before it."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    body = "".join(f"{line}{_joint(line)}" for line in lines if line and not line.startswith("#")).removesuffix("; ")
    return f"clusterctl_silence_s={max(1, round(silence_s))}; clusterctl_grace_s={GRACE_S}; {body}"


def _joint(line: str) -> str:
    """What separates this line of a shell script from the next when they are joined."""
    return " " if line.split()[-1] in {"{", "(", "&", "then", "else", "do"} else "; "
