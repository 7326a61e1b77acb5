"""A login to a registry reaches the engine's pull, and nothing of it stays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clusterctl.on_node.job.image_pull import LOGINS, pulled_image

from tests.integration.rehearsed import wait_until

PASSWORD = "p4ss:w0rd"
ENGINE = """\
#!/usr/bin/python3
import json, os, stat, sys
here = os.path.dirname(os.path.realpath(__file__))
with open(here + "/arguments", "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
if sys.argv[1] == "image":
    if not os.path.exists(here + "/pulled"):
        sys.exit("Error: No such image: " + sys.argv[-1])
    print(json.dumps([{"Id": "sha256:0123"}]))
    sys.exit()
path = os.environ["DOCKER_CONFIG"] + "/config.json"
with open(path) as file, open(here + "/login", "w") as seen:
    json.dump({"mode": stat.S_IMODE(os.stat(path).st_mode), "text": file.read()}, seen)
if os.path.exists(here + "/hangs"):
    os.execlp("sleep", "sleep", "60")
if os.path.exists(here + "/refuses"):
    sys.exit("Error: unauthorized: p4ss:w0rd is wrong")
open(here + "/pulled", "w").close()
"""
"""Stands for docker, and notes what it is asked."""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "bin/docker"
    path.parent.mkdir()
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


def test_docker_finds_the_login_in_a_file_that_is_gone_afterwards(engine: Path, tmp_path: Path) -> None:
    left = tmp_path / LOGINS / "999999999"
    left.mkdir(parents=True)
    found = pulled_image(str(engine), "nvcr.io/a:1", root=tmp_path, login=f"$oauthtoken:{PASSWORD}")
    assert found == "sha256:0123"
    seen = json.loads((engine.parent / "login").read_text())
    assert seen["mode"] == 0o600
    assert list(json.loads(seen["text"])["auths"]) == ["nvcr.io"]
    assert PASSWORD not in (engine.parent / "arguments").read_text()
    assert list((tmp_path / LOGINS).iterdir()) == [], "its own, and that of a pull that was killed"


def test_a_refused_login_is_told_without_the_password_and_is_gone_too(engine: Path, tmp_path: Path) -> None:
    (engine.parent / "refuses").touch()
    with pytest.raises(ValueError, match=r"docker pull: unauthorized: \*\*\* is wrong"):
        pulled_image(str(engine), "a:1", root=tmp_path, login=f"ada:{PASSWORD}")
    assert list((tmp_path / LOGINS).iterdir()) == []


PULL = """\
import sys
from pathlib import Path
from clusterctl.on_node.job.image_pull import exit_on_signals, pulled_image
exit_on_signals()
pulled_image(sys.argv[1], "a:1", root=Path(sys.argv[2]), login="ada:p4ss")
"""


@pytest.mark.parametrize("end_signal", [signal.SIGTERM, signal.SIGHUP])
def test_a_pull_that_is_told_to_end_takes_its_login_along(
    engine: Path, tmp_path: Path, end_signal: signal.Signals
) -> None:
    (engine.parent / "hangs").touch()
    with subprocess.Popen([sys.executable, "-c", PULL, str(engine), str(tmp_path)]) as pull:
        wait_until((engine.parent / "login").exists, what="the engine has read the login", timeout_s=30)
        assert len(list((tmp_path / LOGINS).iterdir())) == 1
        pull.send_signal(end_signal)
        assert pull.wait(timeout=30) == 128 + end_signal
    assert list((tmp_path / LOGINS).iterdir()) == []
