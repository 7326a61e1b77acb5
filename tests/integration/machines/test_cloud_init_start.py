"""The base image's `/usr/bin/cloud-init`: what it says, and how it ends, is cloud-init's own. Needs root."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.image import ensure_image, host_recipe

OURS = "/usr/bin/cloud-init"
AS_PACKAGED = f"import sys; from cloudinit.cmd.main import main; sys.argv[0] = {OURS!r}; sys.exit(main())"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["nonsense"], 2), (["schema", "--config-file", "/none"], 1)]
)
def test_cloud_init_ends_as_without_our_script(cache: Path, arguments: list[str], code: int) -> None:
    image = ensure_image(cache, host_recipe(), print)
    plain, ours = (
        subprocess.run(["chroot", image, *program, *arguments], capture_output=True, text=True, timeout=60)
        for program in (["python3", "-c", AS_PACKAGED], [OURS])
    )
    assert plain.returncode == code
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
