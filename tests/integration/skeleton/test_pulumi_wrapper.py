"""`.venv/bin/pulumi`: what it sets, what it leaves alone, and that the engine behind it works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pulumi_engine
import pytest
from clusterctl.engine.environment import PYTHON

CHECKOUT = Path(__file__).resolve().parents[3]
WRAPPER = CHECKOUT / "scripts" / "pulumi-wrapper"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a blank in its name, whose engine prints the environment it was given."""
    folder = tmp_path / "a checkout"
    (folder / ".venv" / "bin").mkdir(parents=True)
    engine = folder / "engine"
    engine.write_text("#!/bin/sh\nenv\n")
    engine.chmod(0o755)
    wrapper = folder / ".venv" / "bin" / "pulumi"
    text = WRAPPER.read_text().replace("@CHECKOUT@", f"'{folder}'").replace("@ENGINE@", f"'{engine}'")
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    return folder


def run(checkout: Path, *arguments: str, cwd: Path | None = None, **variables: str) -> dict[str, str]:
    """The environment the engine saw."""
    done = start(checkout, *arguments, cwd=cwd, **variables)
    stdout, stderr = done.communicate(timeout=20)
    assert done.returncode == 0, stderr
    return dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)


def start(checkout: Path, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    return subprocess.Popen(
        [checkout / ".venv" / "bin" / "pulumi", *arguments],
        cwd=cwd or checkout,
        env={**clean, **variables},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_with_nothing_set_everything_lies_in_the_checkout(checkout: Path) -> None:
    seen = run(checkout)
    own = checkout / ".pulumi"
    assert seen["PULUMI_HOME"] == str(own / "home")
    assert seen["PULUMI_BACKEND_URL"] == f"file://{own}/state"
    assert seen["PULUMI_SKIP_UPDATE_CHECK"] == "true"
    assert seen["PATH"].startswith(f"{checkout}/.venv/bin:")
    assert seen["PULUMI_PYTHON_CMD"].startswith(f"{checkout}/cli/")
    assert seen["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(own / "passphrase")
    assert len((own / "passphrase").read_text()) == 48
    assert (own / "passphrase").stat().st_mode & 0o777 == 0o600
    assert own.stat().st_mode & 0o077 == 0


def test_what_is_set_is_left_alone(checkout: Path) -> None:
    seen = run(
        checkout,
        PULUMI_HOME="/h",
        PULUMI_BACKEND_URL="s3://b",
        PULUMI_CONFIG_PASSPHRASE="",
        PULUMI_PYTHON_CMD="python3.12",
    )
    assert (seen["PULUMI_HOME"], seen["PULUMI_BACKEND_URL"]) == ("/h", "s3://b")
    assert seen["PULUMI_PYTHON_CMD"] == "python3.12"
    assert seen["PULUMI_CONFIG_PASSPHRASE"] == ""
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in seen


def test_a_login_and_a_projects_own_backend_win(checkout: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "credentials.json").write_text('{\n    "current": "s3://b"\n}')
    assert "PULUMI_BACKEND_URL" not in run(checkout, PULUMI_HOME=str(home))
    assert "PULUMI_BACKEND_URL" not in run(checkout, "login", "s3://b")
    (tmp_path / "Pulumi.yaml").write_text("name: x\nbackend:\n  url: s3://b\n")
    assert "PULUMI_BACKEND_URL" not in run(checkout, cwd=tmp_path)


def test_many_at_once_agree_on_one_passphrase(checkout: Path) -> None:
    together = [start(checkout) for _ in range(12)]
    outcomes = [(process.communicate(timeout=30), process.returncode) for process in together]
    assert [code for _, code in outcomes] == [0] * 12, outcomes
    assert sorted(path.name for path in (checkout / ".pulumi").iterdir()) == ["home", "passphrase", "state"]


def test_an_engine_that_is_gone_is_said_with_the_command_that_helps(checkout: Path) -> None:
    (checkout / "engine").unlink()
    done = start(checkout, "version")
    _, stderr = done.communicate(timeout=20)
    assert done.returncode == 127
    assert stderr.count("\n") == 1
    assert stderr.rstrip().endswith("scripts/engine")


@pytest.mark.parametrize("ambient", ["false", "true"])
def test_a_python_program_runs_with_the_environments_python(tmp_path: Path, ambient: str) -> None:
    """Also with a fresh PULUMI_HOME, and when plugins on PATH are not looked at."""
    (tmp_path / "Pulumi.yaml").write_text("name: proof\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("import sys, pulumi\npulumi.export('prefix', sys.prefix)\n")
    (tmp_path / "state").mkdir()
    environment = {
        **os.environ,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}/state",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": ambient,
    }
    pulumi = str(CHECKOUT / ".venv/bin/pulumi")
    for arguments in (["stack", "init", "dev"], ["up", "--yes", "--skip-preview"], ["stack", "output", "prefix"]):
        done = subprocess.run(
            [pulumi, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == str(CHECKOUT / ".venv")


def test_the_language_host_hears_of_the_packages_that_pip_would_name() -> None:
    question = ["-m", "pip", "list", "-v", "--format", "json"]
    answers = []
    for python in (PYTHON, sys.executable):
        path = f"{CHECKOUT / '.venv' / 'bin'}:/usr/bin:/bin"
        done = subprocess.run(
            [python, *question], cwd="/", env={"PATH": path}, capture_output=True, text=True, timeout=60, check=True
        )
        rows = json.loads(done.stdout)
        answers.append(sorted((canonical_name(row["name"]), row["version"], row["location"]) for row in rows))
    assert answers[0] == answers[1]
    asked = subprocess.run([PYTHON, "-c", "print(1 + 1)"], capture_output=True, text=True, timeout=20, check=True)
    assert asked.stdout == "2\n", "whatever else it is asked is for Python"


def test_setup_run_again_does_nothing_and_says_which_engine(tmp_path: Path) -> None:
    stamp = CHECKOUT / ".venv" / "made-from"
    if not stamp.read_text(encoding="utf-8").startswith(f"{CHECKOUT}, "):
        pytest.fail("this .venv was made in another folder, and setup would make it anew; next: scripts/setup")
    before = stamp.stat().st_mtime_ns
    done = subprocess.run([CHECKOUT / "scripts" / "setup"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("engine ")
    assert stamp.stat().st_mtime_ns == before
    assert sys.prefix == str(CHECKOUT / ".venv")


def canonical_name(written: str) -> str:
    """One spelling of a package's name (packaging.python.org, "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", written).lower()


def test_an_engine_that_is_asked_for_its_version_leaves_no_log_in_the_persons_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every start of it writes one below its home; `scripts/setup` asks each time."""
    binary = tmp_path / "pulumi"
    binary.write_text('#!/bin/sh\necho "v$PULUMI_HOME"\n')
    binary.chmod(0o755)
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    assert pulumi_engine.engine_version(binary) == str(CHECKOUT / ".pulumi/home")
