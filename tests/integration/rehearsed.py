"""A rehearsed cluster for one test: a stack of its own, driven by the real command line, always cleaned up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any  # parsed JSON

from clusterctl_infra.names import HOME_VARIABLE
from clusterctl_rehearsal.cleaning import clean
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.machines import cgroup, machine_processes
from clusterctl_rehearsal.machines.cgroup import mounted_trees
from clusterctl_rehearsal.region.client import RegionClient
from clusterctl_rehearsal.region.ending import end_region
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.store import Store

from tests.integration import key_service

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
CLUSTERCTL = str(BIN / "clusterctl")
STATE_ONCE = "PULUMI_SKIP_CHECKPOINTS"
"""With it the engine writes its state at its end alone, as clusterctl has it do for many machines (ADR 22)."""
PLUGINS = (("aws", ROOT / "rehearsal" / "plugin"), ("clusterctl", ROOT / "infra" / "plugin"))


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """All that a person saw."""
        return self.stdout + self.stderr


@dataclass(kw_only=True)
class Rehearsed:
    """A stack folder, and clusterctl run on it."""

    name: str
    folder: Path
    env: dict[str, str]
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """What this computer knows of clusters, and the rehearsed region."""
        return Path(self.env[HOME_VARIABLE])

    def write(self, *, machines: str, settings: Mapping[str, Any] | None = None, **config: Any) -> None:
        """Writes cluster.yaml (kept from call to call, `config` added) and rehearsal.yaml; JSON is YAML."""
        self.config.update(config)
        (self.folder / "cluster.yaml").write_text(json.dumps(self.config, indent=1))
        (self.folder / "rehearsal.yaml").write_text(json.dumps({"machines": machines, **(settings or {})}))

    def keep_steps(self) -> None:
        """Has the engine write its state at every step, as it does for users: a test that ends it half-way needs that.

        For all others that would be a seventh of the processor time of an `up`.
        """
        self.env.pop(STATE_ONCE, None)

    def run(self, *arguments: str, timeout_s: float = 180, env: Mapping[str, str] | None = None) -> Done:
        """clusterctl with `arguments`; its end, whatever it was."""
        return run([CLUSTERCTL, *arguments], env={**self.env, **(env or {})}, cwd=self.folder, timeout_s=timeout_s)

    def run_unshown(self, *arguments: str, timeout_s: float = 180) -> Done:
        """The same where stdout takes nothing, as with a full disk behind it."""
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [CLUSTERCTL, *arguments],
                env=self.env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=timeout_s,
                text=True,
                errors="replace",
                check=False,
            )
        return Done(exit_code=done.returncode, stdout="", stderr=done.stderr)

    def ok(self, *arguments: str, timeout_s: float = 180) -> str:
        """What clusterctl printed to stdout; an exit code other than 0 fails the test with all it printed."""
        done = self.run(*arguments, timeout_s=timeout_s)
        assert done.exit_code == 0, f"clusterctl {' '.join(arguments)}: exit {done.exit_code}\n{done.text}"
        return done.stdout

    def up(self, *arguments: str) -> str:
        """`clusterctl up` on the stack, which must succeed."""
        return self.ok("up", str(self.folder), *arguments)

    def down(self) -> str:
        """`clusterctl down` on the stack, which must succeed."""
        return self.ok("down", str(self.folder))

    def pulumi(self, *arguments: str, timeout_s: float = 180) -> Done:
        """The engine itself, in the stack's folder."""
        return run([str(BIN / "pulumi"), *arguments], env=self.env, cwd=self.folder, timeout_s=timeout_s)

    def status(self) -> dict[str, Any]:
        """`clusterctl status --json`, whatever its exit code."""
        done = self.run("status", "--json")
        assert done.stdout.strip(), f"status printed no JSON: exit {done.exit_code}\n{done.stderr}"
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Node name → its row of `status --json`."""
        return {row["name"]: row for row in self.status()["nodes"]}

    def resources(self) -> list[Record]:
        """What exists in the rehearsed region."""
        return resources_of(self.env)

    def inventory(self) -> dict[str, Any]:
        """The inventory's file."""
        parsed: dict[str, Any] = json.loads((self.home / "inventory" / f"{self.name}@rehearsal.json").read_text())
        return parsed

    def instance_ids(self) -> dict[str, str]:
        """Node name → instance id, from the inventory."""
        return {row["name"]: row["instance_id"] for row in self.inventory()["nodes"]}

    def deadline(self) -> datetime:
        """The cluster's deadline, from the inventory."""
        return datetime.fromisoformat(self.inventory()["deadline"])

    def on_disk(self, node: str, path: str) -> str:
        """The text of a node's file, read on this computer; "" where it has none.

        A command on the node takes most of a second of the processor, and the login is a sign of life.
        """
        file = self.home / "rehearsal" / "machines" / self.name / node / "upper" / path.lstrip("/")
        try:
            return file.read_text()
        except FileNotFoundError:
            return ""

    def agent_status(self, node: str) -> dict[str, Any]:
        """A node's status.json, as its agent wrote it last; empty before the first time."""
        parsed: dict[str, Any] = json.loads(self.on_disk(node, "/etc/clusterctl/status.json") or "{}")
        return parsed

    def starts(self) -> dict[str, str]:
        """Node name → when its machine's first process started, of those that are on: another one after a reboot.

        As this computer's kernel has it: a command on the nodes takes most of a second of the processor.
        """
        firsts = {node: first_process_of(self.name, node) for node in self.instance_ids()}
        stats = {node: Path(f"/proc/{pid}/stat").read_text() for node, pid in firsts.items() if pid is not None}
        # Field 22 of /proc/PID/stat is the start time (proc(5)); the command's name before it may hold blanks.
        return {node: stat.rsplit(")", 1)[1].split()[19] for node, stat in stats.items()}

    def wait_for_output(self, job: str, text: str, *, times: int = 1, timeout_s: float = 60) -> None:
        """Returns once the job has printed `text` so often.

        By one command that follows the job's output: asked again and again, each takes 0.7 s of the processor.
        """
        argv = [CLUSTERCTL, "job", "logs", job, "--follow"]
        quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(argv, env=self.env, cwd=self.folder, stdin=quiet, stdout=pipe, text=True) as following:
            stopping = threading.Timer(timeout_s, following.terminate)
            stopping.start()
            output = ""
            for line in following.stdout or ():
                output += line
                if output.count(text) >= times:
                    break
            stopping.cancel()
            following.terminate()
        assert output.count(text) >= times, f"not {times} times {text!r} within {timeout_s:.0f} s:\n{output}"

    def fault(self, *arguments: str) -> None:
        """A fault that the region must accept, asked for as `rehearse fault` does; that verb takes 0.7 s to start."""
        verb, *rest = arguments
        with RegionClient(rehearsal_home(self.env)) as region:
            region.ask("fault", {"verb": verb, "args": rest})

    def lose_home(self) -> None:
        """All that this computer knew of clusters is lost; the stand-in for AWS itself is not."""
        for path in self.home.iterdir():
            if path.name != "rehearsal":
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def run(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float) -> Done:
    """The end of `argv`; raises subprocess.TimeoutExpired after `timeout_s`."""
    done = subprocess.run(
        list(argv),
        env=dict(env),
        cwd=cwd,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return Done(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def wait_until(condition: Callable[[], bool], *, what: str, timeout_s: float) -> None:
    """Returns once `condition` holds; fails the test naming `what` when it does not in time.

    A condition that asks a command takes longer than the usual pause; then the pause is as long as that.
    """
    until = time.monotonic() + timeout_s
    while True:
        asked_at = time.monotonic()
        if condition():
            return
        answered_at = time.monotonic()
        assert answered_at < until, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(max(0.2, answered_at - asked_at))


def resources_of(env: Mapping[str, str]) -> list[Record]:
    """What exists in the region of this home, read from its files: `rehearse list` takes a second to say the same."""
    folder = rehearsal_home(env).store
    return list(Store(folder).live()) if folder.is_dir() else []


def cgroups_of(name: str) -> Path | None:
    """The cgroup folder of the cluster `name`, while it has one."""
    folder = mounted_trees().unified / "clusterctl" / name
    return folder if folder.is_dir() else None


def alive(name: str) -> list[str]:
    """Nodes of the cluster `name` that have processes, by cgroup: the kernel's truth, nobody's records."""
    folder = cgroups_of(name)
    if folder is None:
        return []
    return sorted(
        events.parent.name for events in folder.glob("*/cgroup.events") if "populated 1" in events.read_text()
    )


def alive_without_root(name: str) -> list[str]:
    """Process machines of the cluster `name` that live, by their first processes: the kernel's truth too."""
    return sorted(node for cluster, node in machine_processes.machines() if cluster == name)


def first_process_of(cluster: str, node: str) -> int | None:
    """The process id of the machine's first process, whichever kind it is of; None if the machine is not up."""
    booted = None if cgroups_of(cluster) is None else cgroup.first_process(mounted_trees(), cluster, node)
    return machine_processes.first_process(cluster, node) if booted is None else booted


def namespaces(name: str) -> list[str]:
    """Network namespaces of the cluster `name`."""
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"ccl-{name}*")) if folder.is_dir() else []


@contextmanager
def rehearsed(folder: Path, *, machines: str, nodes: int, **config: Any) -> Iterator[Rehearsed]:
    """A stack in `folder` with a name no other test has; whatever happens, nothing of it is left."""
    cluster = new_stack(folder, machines=machines, nodes=nodes, **config)
    with nothing_left(cluster.name, env=cluster.env):
        yield cluster


def new_stack(folder: Path, *, machines: str, nodes: int, **config: Any) -> Rehearsed:
    """A stack in `folder` with a name no other test has, of which nothing is made yet."""
    name = f"t{uuid.uuid4().hex[:7]}"
    state = folder / "state"
    stack = folder / "stack"
    state.mkdir()
    stack.mkdir()
    env = {
        **own_environment(folder),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PULUMI_HOME": str(folder / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        **key_service.variables(),
        "PULUMI_STACK": "dev",
        STATE_ONCE: "true",
    }
    (stack / "__main__.py").write_bytes((ROOT / "stacks" / "rehearsal" / "__main__.py").read_bytes())
    plugins = "".join(f"    - name: {plugin}\n      path: {path}\n" for plugin, path in PLUGINS)
    (stack / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\nplugins:\n  providers:\n{plugins}")
    (stack / "Pulumi.dev.yaml").write_text(f"secretsprovider: {key_service.PROVIDER}\n")
    cluster = Rehearsed(
        name=name,
        folder=stack,
        env=env,
        config={
            "name": name,
            "region": "us-west-2",
            "zone": "us-west-2b",
            "nodes": nodes,
            "instance_type": "p5.48xlarge",
            "access": {"mode": "public", "ssh_from": ["203.0.113.7/32"]},
            "caps": {"runtime": "1h"},
            **config,
        },
    )
    cluster.write(machines=machines)
    return cluster


@contextmanager
def nothing_left(name: str, *, env: Mapping[str, str]) -> Iterator[None]:
    """After it nothing is left of the cluster `name`, and of any other that `env` has, whatever happens meanwhile."""
    try:
        yield
    finally:
        # As `rehearse clean --all` does it. Not by the command line: a start takes 0.2 s of the processor,
        # and it refuses while an `up` runs that a failed test has left.
        home = rehearsal_home(env)
        end_region(home)
        clean(home, cluster=None)
        assert alive(name) == []
        assert alive_without_root(name) == []
        assert namespaces(name) == []


def own_environment(folder: Path) -> dict[str, str]:
    """What a command sees whose home is in `folder`: nothing that points at anybody's account, home or engine."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_", "CLUSTERCTL_"))}
    kept |= {
        key: os.environ[key]
        for key in ("CLUSTERCTL_CACHE", "CLUSTERCTL_TEST_RUN", "CLUSTERCTL_WARM")
        if key in os.environ
    }
    return {**kept, "CLUSTERCTL_HOME": str(folder / "clusterctl-home")}
