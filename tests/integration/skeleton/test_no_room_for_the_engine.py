"""Places of the engine that cannot be written: a sentence and a command, no traceback."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]


def stderr_of(*argv: str, cwd: Path, **variables: str) -> str:
    """The stderr of a program, which must fail."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    done = subprocess.run(
        argv, cwd=cwd, env={**environ, **variables}, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1, done
    return done.stderr


def test_a_cache_that_cannot_be_made_is_named_with_another_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = str(tmp_path / "file" / "cache")
    stderr = stderr_of(str(CHECKOUT / "scripts/engine"), "--source", "cache", cwd=CHECKOUT, CLUSTERCTL_CACHE=cache)
    assert "cannot be written: Not a directory; it is kept in " in stderr
    assert "next: export CLUSTERCTL_CACHE=" in stderr
    assert "Traceback" not in stderr


def wrapper_in(checkout: Path) -> str:
    """The `pulumi` of a checkout, before an engine that does nothing."""
    text = (CHECKOUT / "scripts/pulumi-wrapper").read_text()
    wrapper = checkout / "pulumi"
    wrapper.write_text(text.replace("@CHECKOUT@", str(checkout)).replace("@ENGINE@", "/bin/true"))
    wrapper.chmod(0o755)
    return str(wrapper)


def test_a_checkout_that_cannot_keep_a_state_says_so(tmp_path: Path) -> None:
    (tmp_path / ".pulumi").touch()
    stderr = stderr_of(wrapper_in(tmp_path), "stack", "ls", cwd=tmp_path)
    assert stderr == (
        f"pulumi: {tmp_path}/.pulumi keeps the state of this checkout and cannot be made; "
        f"next: git clone '{tmp_path}' ~/clusterctl\n"
    )


def test_a_full_disk_is_said_and_leaves_no_passphrase_that_is_none(tmp_path: Path) -> None:
    own = tmp_path / ".pulumi"
    own.mkdir()
    filled = (
        f'mount -t tmpfs -o size=8k tmpfs {own}; cat /dev/zero >{own}/full 2>/dev/null; "$@"; ls -A {own} >&2; exit 1'
    )
    stderr = stderr_of("unshare", "-m", "sh", "-c", filled, "sh", wrapper_in(tmp_path), "stack", "ls", cwd=tmp_path)
    sentence, *left = stderr.splitlines()
    assert sentence == (
        f"pulumi: {own}/passphrase cannot be written, and the state is encrypted with it; next: df -h '{own}'"
    )
    assert left == ["full", "home", "state"]
    subprocess.run([str(tmp_path / "pulumi"), "stack", "ls"], cwd=tmp_path, timeout=30, check=True)
    assert len((own / "passphrase").read_text()) == 48
