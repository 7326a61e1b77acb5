"""The program that runs on nodes for jobs: its archive, how it is installed there, and the line that runs it."""

from __future__ import annotations

import hashlib
import io
import shlex
import zipfile
from functools import cache
from importlib.resources import files

PACKAGE = ("clusterctl", "on_node", "job")
FOLDER = "/var/lib/clusterctl/jobs/programs"
MAIN = "import sys\nfrom clusterctl.on_node.job.__main__ import main\nsys.exit(main(sys.argv[1], sys.argv[2:]))\n"
OLDEST_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive, so that the same program is the same bytes wherever it is made."""

NOT_THERE = 94
"""The exit code of `command` on a node that lacks the program; no shell, nor sudo, nor the program itself gives it."""


@cache
def archive() -> bytes:
    """A zip archive of the whole program."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, text in sorted(_sources().items()):
            zipped.writestr(zipfile.ZipInfo(name, OLDEST_TIME), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def path() -> str:
    """The program's folder on a node. Each version has its own, so a running job keeps the one it was started with.

    A folder and not the archive: at each start Python would recompile every module that it loads from an archive, and a
    job starts the program several times on a node. A start to list jobs would take 43 instead of 33 ms of CPU time, a
    supervisor's 106 instead of 53 (Python 3.11, 2026-11-26).
    """
    return f"{FOLDER}/{hashlib.sha256(archive()).hexdigest()[:16]}"


def command(verb: str, *arguments: str) -> str:
    """The line for a node's shell that runs the program as root; it exits with `NOT_THERE` if there is no program."""
    run = shlex.join(["sudo", "-n", "python3", "-IS", path(), verb, *arguments])
    return "exec sh -c " + shlex.quote(f"[ -s {path()}/__main__.py ] || exit {NOT_THERE}; exec {run}")


def install_command() -> str:
    """The line for a node's shell that installs the program from the archive on stdin.

    The program is there whole, or not at all if the connection ends too early. Root installs it: jobs run as the login
    user, who must not be able to change it.
    """
    place, digest = path(), hashlib.sha256(archive()).hexdigest()
    fresh, packed = f"{place}.$$", f"{place}.$$.zip"
    check = f'[ "$(sha256sum < {packed})" = "{digest}  -" ]'
    unpack = f"python3 -IS -m zipfile -e {packed} {fresh}"
    # If two commands install it at the same time, the second one's mv fails, and it finds the program whole.
    move = f"{{ mv -T {fresh} {place} 2>/dev/null || [ -s {place}/__main__.py ]; }}"
    whole = f"mkdir -p {FOLDER} && cat > {packed} && {check} && {unpack} && {move}"
    put = f"umask 022; {whole}; code=$?; rm -rf {fresh} {packed}; exit $code"
    return "exec sudo -n sh -c " + shlex.quote(put)


def _sources() -> dict[str, str]:
    sources = {"__main__.py": MAIN}
    for depth in range(1, len(PACKAGE)):
        sources["/".join(PACKAGE[:depth]) + "/__init__.py"] = ""
    for path in files(".".join(PACKAGE)).iterdir():
        if path.name.endswith(".py"):
            sources["/".join([*PACKAGE, path.name])] = path.read_text(encoding="utf-8")
    return sources
