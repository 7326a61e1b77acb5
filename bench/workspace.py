"""A throw-away home, state and stack, so that measuring does not touch the person's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / "bin"
# With PYTHONDONTWRITEBYTECODE, which build machines set, every start would compile every file anew.
DROPPED_VARIABLES = ("PULUMI_", "AWS_", "CLUSTERCTL_", "PYTHON")
CLUSTERCTL = str(BIN / "clusterctl")
SOURCES = ("cli", "infra", "bootstrap", "rehearsal")


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The place of one measurement: with `env`, programs write only into `folder`."""

    folder: Path
    env: dict[str, str]
    tree: Path = ROOT
    """The checkout whose stand-in and provider the engine starts."""

    def stack(self, name: str, *, nodes: int, machines: str) -> Path:
        """A new stack folder like stacks/rehearsal with `nodes` nodes on `machines`."""
        source, target = self.tree / "stacks" / "rehearsal", self.folder / name
        target.mkdir()
        (target / "__main__.py").write_bytes((source / "__main__.py").read_bytes())
        plugins = "\n".join(
            f"    - name: {plugin}\n      path: {self.tree / folder}"
            for plugin, folder in (("aws", "rehearsal/plugin"), ("clusterctl", "infra/plugin"))
        )
        (target / "Pulumi.yaml").write_text(
            f"name: {name}\nruntime: python\ndescription: a measurement\nplugins:\n  providers:\n{plugins}\n"
        )
        config = (source / "cluster.yaml").read_text().splitlines()
        config = [line for line in config if line.split(":")[0] not in ("name", "nodes", "access")]
        # Private: with public addresses, AWS's quota of elastic IPs allows no more than five such nodes.
        own = [f"name: {name}", f"nodes: {nodes}", "access: {mode: private}"]
        (target / "cluster.yaml").write_text("\n".join([*own, *config]) + "\n")
        (target / "rehearsal.yaml").write_text(f"machines: {machines}\n")
        return target

    def clusterctl(self, *arguments: str, timeout_s: float = 300) -> None:
        """Runs clusterctl here, not measured. Raises CalledProcessError, with its output, if it fails."""
        subprocess.run([CLUSTERCTL, *arguments], env=self.env, check=True, timeout=timeout_s, capture_output=True)


@contextmanager
def workspace(tree: Path | None = None) -> Iterator[Workspace]:
    """A workspace, removed with its rehearsed machines however the measurement ends.

    `tree`: another checkout whose code is run, with this one's environment; None: this one.
    """
    folder = Path(tempfile.mkdtemp(prefix="clusterctl-bench-"))
    state = folder / "pulumi-state"
    state.mkdir()
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(DROPPED_VARIABLES)},
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CLUSTERCTL_HOME": str(folder / "home"),
        "CLUSTERCTL_WARM": "no",
        "PULUMI_HOME": str(folder / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "measuring",
    }
    if "CLUSTERCTL_CACHE" in os.environ:
        env["CLUSTERCTL_CACHE"] = os.environ["CLUSTERCTL_CACHE"]
    if tree is not None:
        env["PYTHONPATH"] = ":".join(str(tree / folder) for folder in SOURCES)
    try:
        yield Workspace(folder=folder, env=env, tree=tree or ROOT)
    finally:
        subprocess.run(
            [CLUSTERCTL, "rehearse", "clean", "--all"], env=env, check=False, timeout=120, capture_output=True
        )
        shutil.rmtree(folder, ignore_errors=True)
