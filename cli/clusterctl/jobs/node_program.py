"""The program that works on nodes for `run`, and the command line that runs it there."""

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
"""So that the same program is the same bytes wherever it is made."""

NOT_THERE = 94
"""An exit code that neither a shell nor sudo nor the program itself gives."""


@cache
def archive() -> bytes:
    """A zip archive of all that the program is."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, text in sorted(_sources().items()):
            zipped.writestr(zipfile.ZipInfo(name, OLDEST_TIME), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def path() -> str:
    """Where it lies on a node: another place for each version, so a running job keeps the one it was started with.

    A folder, not the archive: of that Python would compile every module anew at each of the starts that a job makes on
    a node, half of their time (155 and 77 ms of the processor, Python 3.11, 2026-11-26).
    """
    return f"{FOLDER}/{hashlib.sha256(archive()).hexdigest()[:16]}"


def command(verb: str, *arguments: str) -> str:
    """The line for a node's shell that runs it as root; `NOT_THERE` where it is not in place."""
    run = shlex.join(["sudo", "-n", "python3", "-I", path(), verb, *arguments])
    return "exec sh -c " + shlex.quote(f"[ -s {path()}/__main__.py ] || exit {NOT_THERE}; exec {run}")


def install_command() -> str:
    """The line that puts it in place, from stdin; whole, or not at all where the connection ends before.

    By root, and before it is run: the login user, as which jobs run, must not be able to change it.
    """
    place, digest = path(), hashlib.sha256(archive()).hexdigest()
    fresh, packed = f"{place}.$$", f"{place}.$$.zip"
    check = f'[ "$(sha256sum < {packed})" = "{digest}  -" ]'
    unpack = f"python3 -I -m zipfile -e {packed} {fresh}"
    # Of two commands that put it there at once one is later, and finds it whole.
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
