"""The script that installs packages, run by a real shell over stand-ins for apt-get and dpkg."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clusterctl_bootstrap.node.hooks import INSTALL

INTERRUPTED = 'echo "E: dpkg was interrupted, you must manually run dpkg --configure -a"; exit 100'


def test_packages_are_installed_though_the_machine_was_reset_while_dpkg_worked(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    programs = {
        "dpkg": f'[ "$*" = "--configure -a" ] && : >"{whole}"',
        "apt-get": f'[ -e "{whole}" ] || {{ {INTERRUPTED}; }}; echo "$@"',
        "sleep": "",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", INSTALL, "sh", "htop"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].endswith("install htop")
