"""Frameworks for the machines' own Python, each in its own folder outside the checkout.

All packages are pinned, dependencies too, so that pip resolves nothing: it would install another torch for accelerate
and DeepSpeed, which use the one of scripts/torch.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # parsed TOML

from clusterctl_bootstrap.kept_texts import cache_folder

CHECKOUT = Path(__file__).resolve().parent.parent
NODES_PYTHON = "/usr/bin/python3"
"""Rehearsed machines have the Python of the distribution."""
SILENT_S, RETRIES = 30, 2
"""A connection that brings nothing for this many seconds has failed, and is tried again this often."""


def main() -> int:
    pins = framework_pins()
    parser = argparse.ArgumentParser(prog="scripts/frameworks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(pins["packages"]), metavar="NAME", help="%(choices)s")
    for name in parser.parse_args().names:
        folder = framework_folder(name)
        if not folder.is_dir() and not make(name, folder, pins):
            return 1
        print(folder)
    return 0


def framework_pins() -> Mapping[str, Any]:
    """The table in versions.toml."""
    found: Mapping[str, Any] = tomllib.loads((CHECKOUT / "scripts" / "versions.toml").read_text())["frameworks"]
    return found


def framework_folder(name: str) -> Path:
    """Where the packages of the framework are, or would be: another folder for other versions."""
    packages = framework_pins()["packages"][name]
    digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
    version = packages[0].partition("==")[2]
    python = nodes_python_version().replace(".", "")
    return cache_folder(os.environ) / "frameworks" / f"{name}-{version}-{digest}-cp{python}"


def nodes_python_version() -> str:
    """The version of the nodes' Python, such as `3.11`."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    argv = [NODES_PYTHON, "-c", show]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def make(name: str, folder: Path, pins: Mapping[str, Any]) -> bool:
    """Installs the framework; False, with the reason on stderr, if that failed. Other processes wait, then find it."""
    with locked(folder.parent):
        if folder.is_dir():
            return True
        for half_made in folder.parent.glob(".making-*"):
            shutil.rmtree(half_made, ignore_errors=True)
        print(f"installing {name} into {folder} (once, about a minute)", file=sys.stderr)
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
        making.chmod(0o755)  # the nodes' login user reads it
        if failure := install(pins["packages"][name], making, timeout_s=60 * pins["minutes"]):
            shutil.rmtree(making, ignore_errors=True)
            next_line = f"next, with the package index in reach: scripts/frameworks {name}"
            print(f"scripts/frameworks: {name} could not be installed: {failure}; {next_line}", file=sys.stderr)
            return False
        making.rename(folder)
        return True


def install(packages: Sequence[str], folder: Path, *, timeout_s: float) -> str | None:
    """Installs the packages into the folder. Returns why that failed; None if it did not."""
    argv = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"),
        *("--timeout", str(SILENT_S), "--retries", str(RETRIES)),
        *("--no-deps", "--python-version", nodes_python_version(), "--target", str(folder)),
        *packages,
    ]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f"pip took over {timeout_s / 60:.0f} minutes"
    return f"pip's output is above, its exit code is {done.returncode}" if done.returncode != 0 else None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time make something in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
