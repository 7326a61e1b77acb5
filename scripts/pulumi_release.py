"""Pulumi's own release of the engine, downloaded and unpacked."""

from __future__ import annotations

import platform
import shutil
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from engine_failure import EngineFailure

MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def download(versions: dict[str, Any], target: Path) -> None:
    """Fills `target` with the archive's programs. Raises EngineFailure, within seconds if there is no network."""
    machine = MACHINES.get(platform.machine().lower())
    if machine is None:
        raise EngineFailure(f"Pulumi has no release for {platform.machine()}")
    release = versions["release"]
    system = platform.system().lower()
    url = release["url"].format(version=versions["version"], system=system, machine=machine)
    print(f"+ download {url}", file=sys.stderr)
    try:
        with urllib.request.urlopen(url, timeout=release["connect_timeout_s"]) as answer:
            unpack(answer, target)
    except (urllib.error.URLError, OSError, tarfile.TarError) as failure:
        reason = getattr(failure, "reason", failure)
        raise EngineFailure(f"{urlsplit(url).hostname} gave no release: {reason}") from failure


def unpack(stream: Any, target: Path) -> None:  # Any: urlopen's answer has no narrower public type
    """Writes the archive's programs, without its folders (`pulumi/` in some releases, `pulumi/bin/` in others)."""
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            content = archive.extractfile(member) if member.isfile() else None
            if content is None or not name.startswith("pulumi"):
                continue
            with (target / name).open("wb") as program:
                shutil.copyfileobj(content, program)
