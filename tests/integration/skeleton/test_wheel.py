"""The wheel, installed where nothing else of the checkout is: what travels in it, what works, what it asks for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.rehearsed import BIN, ROOT, Done, run

PACKAGES = (
    "cli/clusterctl",
    "infra/clusterctl_infra",
    "bootstrap/clusterctl_bootstrap",
    "rehearsal/clusterctl_rehearsal",
)
CLUSTER = """
name: wheeled
region: us-west-2
zone: us-west-2b
nodes: 2
instance_type: p5.48xlarge
access: {mode: private}
"""

IDENTITY = """
import pulumi
from clusterctl_infra.components.own_resources import IdentityResource

identity = IdentityResource(
    "t-identity",
    name="t",
    owner="ada",
    image_spec="dlami",
    image_candidate="ami-0123456789abcdef0",
    zone_candidate="us-west-2b",
    run=1,
)
pulumi.export("id", identity.cluster_id)
"""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An environment with the wheel in it, and a stack of somebody's own far from any checkout."""

    bin: Path
    stack: Path
    env: dict[str, str]

    def clusterctl(self, *arguments: str) -> Done:
        """How the installed program ended, run from another folder than the stack's."""
        argv = [str(self.bin / "clusterctl"), *arguments]
        return run(argv, env=self.env, cwd=self.bin.parent, timeout_s=180)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout as it is now."""
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "."]
    subprocess.run([*argv, str(ROOT)], cwd=folder, check=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Iterator[Installed]:
    """The wheel in a new environment; what it depends on is lent by the one that runs the tests."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=60)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True, timeout=60)
    (packages,) = environment.glob("lib/python3*/site-packages")
    # Entries of such a file are not read for further .pth files: the checkout itself stays out.
    lent = [entry for entry in sys.path if entry.endswith("site-packages")]
    (packages / "lent.pth").write_text("\n".join(lent) + "\n")
    stack = tmp_path / "somebodys"
    stack.mkdir()
    shutil.copy(ROOT / "stacks" / "train" / "__main__.py", stack)
    (stack / "Pulumi.yaml").write_text("name: wheeled\nruntime: python\n")
    (stack / "cluster.yaml").write_text(CLUSTER)
    (stack / "rehearsal.yaml").write_text("machines: none\n")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CLUSTERCTL_HOME": str(tmp_path / "home")}
    env |= {key: value for key, value in os.environ.items() if key == "CLUSTERCTL_TEST_RUN"}
    env["PULUMI_CONFIG_PASSPHRASE"] = "a test"
    there = Installed(bin=environment / "bin", stack=stack, env=env)
    yield there
    there.clusterctl("rehearse", "clean", "--all")


def test_every_file_of_the_packages_travels_in_the_wheel(wheel: Path) -> None:
    wanted = {
        str(path.relative_to((ROOT / package).parent))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"clusterctl_infra/catalog/data/prices.csv", "clusterctl_bootstrap/shell/guard.sh"} <= wanted
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == wanted


def test_without_an_engine_it_plans_and_says_how_to_get_one(installed: Installed) -> None:
    planned = installed.clusterctl("plan", str(installed.stack))
    assert planned.exit_code == 0, planned.text
    assert "2 × p5.48xlarge" in planned.stdout
    refused = installed.clusterctl("up", str(installed.stack), "--rehearse")
    assert refused.exit_code == 1, refused.text
    assert refused.stderr.splitlines()[0].startswith("clusterctl: no pulumi: ")
    assert refused.stderr.splitlines()[1].startswith("  next: curl -fsSL https://get.pulumi.com | sh")


def test_with_an_engine_a_stack_of_ones_own_is_rehearsed(installed: Installed) -> None:
    (installed.bin / "pulumi").symlink_to(engine_binary())
    made = installed.clusterctl("up", str(installed.stack), "--rehearse")
    assert made.exit_code == 0, made.text
    nodes = json.loads(installed.clusterctl("nodes", "--json").stdout)["nodes"]
    assert [node["name"] for node in nodes] == ["wheeled-0", "wheeled-1"]
    used = subprocess.run(
        [installed.bin / "python", "-c", "import clusterctl; print(clusterctl.__file__)"],
        env=installed.env, cwd="/", capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert used.stdout.startswith(str(installed.bin.parent)), "the checkout was used"
    gone = installed.clusterctl("down", str(installed.stack), "--rehearse")
    assert gone.exit_code == 0, gone.text


def test_plain_pulumi_finds_our_plugin_in_the_environment(installed: Installed) -> None:
    """The engine looks for `pulumi-resource-clusterctl` on PATH when Pulumi.yaml names no folder for it."""
    (installed.stack / "__main__.py").write_text(IDENTITY)
    state = installed.stack / "state"
    state.mkdir()
    env = {
        **installed.env,
        "PATH": f"{installed.bin}:/usr/bin:/bin",
        "PULUMI_HOME": str(installed.stack / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    for words in (["stack", "init", "dev"], ["up", "--yes", "--skip-preview"], ["stack", "output", "id"]):
        done = run([engine_binary(), *words], env=env, cwd=installed.stack, timeout_s=120)
        assert done.exit_code == 0, done.text
    assert len(done.stdout.strip()) == 12


def engine_binary() -> str:
    """The real engine behind the environment's wrapper, which would put the checkout's Python first."""
    lines = (BIN / "pulumi").read_text().splitlines()
    return next(line.partition("=")[2].strip("'") for line in lines if line.startswith("engine="))
