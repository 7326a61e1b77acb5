"""How the program starts and ends, as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

HEAVY = (
    "pulumi",
    "pydantic",
    "rich",
    "paramiko",
    "boto3",
    "yaml",
    "cryptography",
    "importlib.metadata",
    "fabric",
    "invoke",
)


def clusterctl(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "clusterctl", *arguments]
    env = {**os.environ, **(environ or {})}
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, env=env, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("words", [["--help"], ["nodes"], ["--version"]])
def test_the_quick_verbs_load_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from clusterctl.program import run; from clusterctl.output import Output;"
        f"run({words!r}, Output.of_process());"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stderr.splitlines()[-1] == "[]"


def test_no_verb_loads_what_is_for_python_programs() -> None:
    # paramiko itself loads Invoke where that is installed.
    code = (
        "import sys, importlib, pkgutil, clusterctl.commands as verbs, clusterctl.program;"
        "names = [f'clusterctl.commands.{each.name}' for each in pkgutil.iter_modules(verbs.__path__)];"
        "[importlib.import_module(name) for name in names];"
        "print(len(names) > 15);"
        "unwanted = ('fabric', 'clusterctl.node_group', 'clusterctl.functions', 'cloudpickle');"
        "print([name for name in unwanted if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n[]\n", "")


def test_a_plan_of_what_does_not_run_loads_nothing_that_asks_aws_or_reads_a_state(
    tmp_path: Path, own_home: Path
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (tmp_path / "cluster.yaml").write_text(
        "name: train\nowner: ada\nregion: us-west-2\nzone: us-west-2b\nnodes: 4\ninstance_type: p5.48xlarge\n"
        "caps: {price_usd_per_hour: 60, budget_usd: 9000, runtime: 24h}\nimage: ami-0123456789abcdef0\n"
        "access: {mode: private}\n"
    )
    needed = {
        "pydantic",
        "importlib.metadata",
        "yaml",
        "cryptography",
    }  # for cluster.yaml and the nodes' keys
    unwanted = (*(name for name in HEAVY if name not in needed), "botocore", "clusterctl.lifecycle.change")
    code = (
        "import sys; from clusterctl.program import run; from clusterctl.output import Output;"
        f"code = run(['plan', {str(tmp_path)!r}], Output.of_process());"
        f"print(code, [name for name in {unwanted!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stderr.splitlines()[-1], "train-3" in done.stdout) == ("0 []", True), done.stderr


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("clusterctl_infra.provider.server", ["pulumi"]),
        ("clusterctl_rehearsal.plugin.__main__", ["pulumi"]),
        ("clusterctl_rehearsal.server.process", ["boto3", "botocore"]),
        ("clusterctl_rehearsal.region.ensure", ["botocore", "yaml", "clusterctl_infra.catalog.reader"]),
    ],
)
def test_what_starts_with_every_up_and_down_loads_nothing_that_it_does_not_use(module: str, heavy: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_command_on_nodes_that_are_near_loads_nothing_of_proxies_and_of_kept_connections(
    loopback_cluster: LoopbackCluster,
) -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "clusterctl", "ssh", "--cold", "--node", "0", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "clusterctl.ssh.fanout.libssh2" in loaded
    assert not loaded & {"tempfile", "shutil", "subprocess", "clusterctl.ssh.proxy", "clusterctl.ssh.broker.process"}
    assert not loaded & {"fabric", "invoke", "clusterctl.node_group"}


def test_a_program_that_loads_the_sdk_after_our_providers_gets_all_of_it() -> None:
    code = (
        "import clusterctl_infra.provider.messages as own, pulumi; from pulumi.runtime.proto import provider_pb2;"
        "print(provider_pb2 is own.provider_pb2, pulumi.Output.from_input)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("True <function"), done.stderr


def test_a_reader_that_stops_early_is_no_failure(loopback_cluster: LoopbackCluster) -> None:
    line = f"{sys.executable} -m clusterctl nodes --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30)
    assert done.stdout == "{\n0\n"
    assert done.stderr == ""


def test_no_cluster_is_exit_3_with_what_to_type() -> None:
    done = clusterctl("nodes")
    assert done.returncode == 3
    assert "next: clusterctl up" in done.stderr


def test_rehearse_passes_its_words_and_exit_code_through() -> None:
    done = clusterctl("rehearse", "list", "--json")
    assert (done.returncode, done.stdout[:3]) == (0, "{\n ")
    assert clusterctl("rehearse", "no-such-verb").returncode == 2


def test_bash_completes_verbs_clusters_and_nodes(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    def completed(words: str, position: int) -> list[str]:
        environ = {"_CLUSTERCTL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        return clusterctl(environ=environ).stdout.split()

    assert completed("clusterctl ss", 1) == ["plain,ssh", "plain,ssh-config"]
    assert completed("clusterctl nodes --cluster ", 3) == ["plain,train"]
    assert completed("clusterctl ssh --node train-", 3) == [f"plain,train-{n}" for n in range(4)]
    script = clusterctl("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, timeout=10).returncode == 0


def test_ssh_config_lets_plain_ssh_in(loopback_cluster: LoopbackCluster, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(clusterctl("ssh-config").stdout)
    argv = ["ssh", "-F", str(config), "train-2", "echo $SSH_CONNECTION | cut -d' ' -f3"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.stdout == "127.0.17.3\n", done.stderr
    loopback_cluster.change_host_key(2)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 255


def test_a_stack_that_was_never_run_has_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: never\nruntime: python\n")
    (tmp_path / "cluster.yaml").write_text("name: never\n")
    environ = {
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_HOME": str(tmp_path),
    }
    done = clusterctl("nodes", "--stack", str(tmp_path), environ=environ)
    assert done.returncode == 3
    assert f"has no cluster in the Pulumi backend file://{tmp_path}" in done.stderr
