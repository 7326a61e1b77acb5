"""Runs commands of the host, each within its time; a sentence says which one failed, and how."""

import subprocess

COMMAND_S = 60


class Refused(Exception):
    """The host cannot be changed as wanted, or not wholly; the text says why."""


def must(*argv: str) -> str:
    """The output of a command that has to succeed. Raises Refused."""
    done = run(*argv)
    if done.returncode:
        raise Refused("%s: exit %d: %s" % (" ".join(argv), done.returncode, done.stdout.strip()[-300:]))
    return done.stdout


def run(*argv: str) -> "subprocess.CompletedProcess[str]":
    """The command's exit code and output."""
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_S,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
