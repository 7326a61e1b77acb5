"""Functions of a Python program on process machines, and what else is proven on the same ones: `check`, guides."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.guides import SATURN, needs_guides
from tests.integration.jobs.job_folders import folder_with
from tests.integration.jobs.wheels import write_wheel
from tests.integration.rehearsed import ROOT, Done, Rehearsed, run, wait_until

HEAD = """\
import os, sys, time
import clusterctl
import near
app = clusterctl.App("test")
# The node's own python3 may be another one than the one that runs the tests.
environment = {{"PATH": {path!r}, "EPOCHS": "3"}}
by_torchrun = dict(cluster={cluster!r}, num_instances=2, gpu="h100:1", environment=environment)
settings = {{**by_torchrun, "distributed_mode": "manual"}}  # loads no torch

# Not by torchrun after all: what it requires is installed into an environment of its own, which has no torch.
@app.function(**by_torchrun, requirements=["--no-index", "--find-links wheels", "tinypkg>=1"])
def add(a, b=0):
    import tinypkg
    print("adds", *[os.environ[name] for name in ("RANK", "WORLD_SIZE", "FLOW_NUM_NODES", "EPOCHS")], flush=True)
    print("with tinypkg", tinypkg.VERSION, flush=True)
    return near.Pair(a + b, int(os.environ["RANK"]))

@app.function(**by_torchrun)
def fail():
    if os.environ["RANK"] == "1":
        raise ValueError("wrong epoch")
    time.sleep(600)

@app.function(**settings)
def die():
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), 9)
    time.sleep(600)

@app.function(**{{**settings, "name": {name!r}}})
def stay():
    print("up", flush=True)
    time.sleep(600)

@app.function(**settings)
def lock():
    import threading
    return threading.Lock()

if __name__ == "__main__":
"""
NEAR = """\
import collections, clusterctl
Pair = collections.namedtuple("Pair", "total rank")
app = clusterctl.App("beside")

@app.function(cluster="nowhere")
def never():
    return 1
"""
UNGUARDED = "import clusterctl\n@clusterctl.App('x').function(cluster='nowhere')\ndef f():\n    return 1\nf.remote()\n"
SAY_ARGV = "#!/bin/sh\nprintf 'words'; printf ' %s' \"$@\"; echo\n"
"""In the place of a launcher: what it would have been given."""


@pytest.fixture
def cluster(process_pair: Rehearsed) -> Rehearsed:
    """Two process machines that are up."""
    return process_pair


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder of a program with functions."""
    return folder_with(tmp_path, {"near.py": NEAR})


def program(cluster: Rehearsed, work: Path, *lines: str, name: str = "unused") -> list[str]:
    """The argv of a program with these lines."""
    path = f"{Path(sys.base_prefix) / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    head = HEAD.format(path=path, cluster=cluster.name, name=name)
    script = work / "program.py"
    script.write_text(head + "".join(f"    {line}\n" for line in lines))
    return [sys.executable, str(script)]


def run_program(cluster: Rehearsed, work: Path, *lines: str, name: str = "unused") -> Done:
    return run(program(cluster, work, *lines, name=name), env=cluster.env, cwd=work, timeout_s=120)


def jobs(cluster: Rehearsed) -> int:
    return len(json.loads(cluster.ok("jobs", "--json")))


def test_a_function_with_requirements_gives_what_it_gives_on_rank_0_or_on_all_and_its_output_is_shown(
    cluster: Rehearsed, work: Path
) -> None:
    (work / "wheels").mkdir()
    write_wheel(work / "wheels", "tinypkg", "1.2")
    done = run_program(cluster, work, "print(add.remote(1, b=2))", "print(add.remote(4, all_ranks=True))")
    assert done.exit_code == 0, done.text
    assert "Pair(total=3, rank=0)\n" in done.stdout
    assert "[Pair(total=4, rank=0), Pair(total=4, rank=1)]\n" in done.stdout
    assert "adds 1 2 2 3" in done.stdout
    assert "[Node 1]" in done.stdout
    assert done.stdout.count("with tinypkg 1.2") == 4, "on two nodes, twice"


def test_an_exception_comes_back_with_its_node_rank_and_traceback(cluster: Rehearsed, work: Path) -> None:
    lines = (
        "try:",
        "    fail.remote()",
        "except clusterctl.RemoteError as e:",
        "    print([e.node, e.rank, e.type_name], 'in fail' in e.traceback, str(e).splitlines()[0])",
    )
    done = run_program(cluster, work, *lines)
    assert done.exit_code == 0, done.text
    last_line = done.stdout.splitlines()[-1]
    assert last_line.startswith(f"['{cluster.name}-1', 1, 'ValueError'] True "), done.text
    assert last_line.endswith("rank 1: ValueError: wrong epoch")


def test_a_rank_that_is_killed_ends_the_task_and_is_named(cluster: Rehearsed, work: Path) -> None:
    done = run_program(cluster, work, "die.remote()")
    assert done.exit_code == 1
    error = next(line for line in done.stderr.splitlines() if "RemoteError: " in line)
    assert "rank 1" in error, done.text
    assert "was killed by signal 9" in error


def test_a_task_outlives_its_program_and_any_other_finds_and_cancels_it(cluster: Rehearsed, work: Path) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    done = run_program(cluster, work, "print(stay.spawn().name)", name=name)
    assert (done.exit_code, done.stdout) == (0, f"{name}\n"), done.text
    cluster.wait_for_output(name, "up", times=2)
    lines = (
        f"task = clusterctl.get_task({name!r}, cluster={cluster.name!r})",
        "print(task.status, task.num_instances, task.logs(node=1).count('up'))",
        "print(task.cancel(), task.wait())",
        "task.result()",
    )
    other = run_program(cluster, work, *lines)
    assert other.stdout == "running 2 1\ncancelled cancelled\n", other.text
    assert "RemoteError" in other.stderr
    assert f"{name}: cancelled" in other.stderr


def test_ctrl_c_cancels_without_a_question_and_shows_no_line_twice(cluster: Rehearsed, work: Path) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    argv = program(cluster, work, "stay.remote()", name=name)
    shown = work.parent / "shown"
    with shown.open("w") as stdout:
        process = subprocess.Popen(
            argv, env=cluster.env, cwd=work, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True
        )
        try:
            wait_until(lambda: shown.read_text().count("up") == 2, what="both ranks are shown", timeout_s=90)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=90)
        finally:
            process.kill()
            process.wait()
    assert "KeyboardInterrupt" in stderr
    assert shown.read_text().count("up") == 2
    assert json.loads(cluster.ok("job", "show", name, "--json"))["state"] == "cancelled"


def test_what_cannot_travel_or_starts_within_a_job_is_told_and_starts_nothing(cluster: Rehearsed, work: Path) -> None:
    before = jobs(cluster)
    refused = run_program(cluster, work, "add.remote(__import__('threading').Lock())")
    assert "argument 1 of add() cannot go to the nodes, it cannot be pickled" in refused.stderr
    (work / "unguarded.py").write_text(UNGUARDED)
    here = run([sys.executable, "unguarded.py"], env={**cluster.env, "CLUSTERCTL_JOB": "other"}, cwd=work, timeout_s=60)
    assert "f() was called on nodes within the job other" in here.stderr
    assert jobs(cluster) == before
    done = run_program(cluster, work, "lock.remote()")
    assert "the result, of type lock, cannot be pickled" in done.stderr


def test_check_finds_that_all_nodes_reach_each_other_by_their_names(cluster: Rehearsed) -> None:
    done = cluster.run("check", "--json")
    found = json.loads(done.stdout)
    assert found["pairs"] == [], done.text
    kinds = {finding["kind"] for node in found["nodes"] for finding in node["findings"]}
    assert not {kind for kind in kinds if "network" in kind or "port" in kind or "address" in kind}, done.text
    assert [node["node"] for node in found["nodes"]] == [f"{cluster.name}-0", f"{cluster.name}-1"]
    # The disks are this computer's own, and may be full.
    full = [kind for kind in kinds if kind.endswith(" is full")]
    assert done.exit_code == (4 if full else 0), done.text
    assert "2 nodes, names, clocks, TCP between all" in cluster.run("check").stdout


def test_every_command_of_the_page_on_troubleshooting_runs(cluster: Rehearsed) -> None:
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
    lines = [line.strip() for line in page.splitlines() if line.startswith("    clusterctl ")]
    assert len(lines) >= 7
    for line in lines:
        done = cluster.run(*shlex.split(line)[1:])
        # A rehearsed node may have a full disk: 4 is an answer, too.
        assert done.exit_code in ((0, 4) if line in ("clusterctl check", "clusterctl sweep") else (0,)), (
            line,
            done.text,
        )


def test_nodes_find_the_leader_by_saturn_s_names(cluster: Rehearsed) -> None:
    folder = str(ROOT / "examples" / "guides" / "saturn")
    done = cluster.run("run", "--launcher", "plain", "--workdir", folder, "--", "peers.py")
    assert done.exit_code == 0, done.text
    assert f"all 2 nodes found {cluster.name}-0.nodes.clusterctl.svc.cluster.local" in done.stdout


@pytest.mark.torch
@pytest.mark.parametrize(
    ("guide", "training", "result"),
    [
        ("pytorch", "train.py", "2 ranks: the weight is 0.000 off"),
        ("saturn", "fsdp.py", "2 ranks hold [32, 32] weights: they are 0.000 off"),
    ],
)
def test_a_guides_training_runs_by_one_command(cluster: Rehearsed, guide: str, training: str, result: str) -> None:
    folder = str(ROOT / "examples" / "guides" / guide)
    done = cluster.run("run", "--nproc", "1", "--workdir", folder, "--", training)
    assert done.exit_code == 0, done.text
    assert result in done.stdout


@pytest.mark.torch
def test_flow_s_example_runs_on_a_cluster_that_is_up(cluster: Rehearsed, work: Path) -> None:
    script = str(ROOT / "examples" / "guides" / "flow" / "train.py")
    done = run([sys.executable, script, cluster.name], env=cluster.env, cwd=work, timeout_s=120)
    assert done.exit_code == 0, done.text
    assert "{'ranks': 2, 'off': 0.0}" in done.stdout
    assert "at most $" in done.stdout


def launch_lines() -> list[str]:
    """The guide's launch lines that go over several lines, as printed."""
    return re.findall(r"^(?:torchrun|accelerate launch) \\\n(?:  .*\\\n)*  .*$", SATURN.read_text(), re.MULTILINE)


def tf_config_snippet() -> str:
    """The guide's lines that build TF_CONFIG, up to TensorFlow's own import."""
    _, begin, behind = SATURN.read_text().partition("import json\nimport os\n")
    return begin + behind.partition("import tensorflow")[0]


@needs_guides
def test_saturn_s_launch_lines_become_each_node_s_own(cluster: Rehearsed, work: Path) -> None:
    lines = launch_lines()
    assert {line.split()[0] for line in lines} == {"torchrun", "accelerate"}
    for launcher in ("torchrun", "accelerate"):
        (work / launcher).write_text(SAY_ARGV)
        (work / launcher).chmod(0o755)
    script = "PATH=$PWD:$PATH\n" + "\n".join(lines)
    done = cluster.run("run", "--launcher", "plain", "--workdir", str(work), "--", "sh", "-c", script)
    assert done.exit_code == 0, done.text
    leader = f"{cluster.name}-0.nodes.clusterctl.svc.cluster.local"
    for rank in range(2):
        shown = [line for line in done.stdout.splitlines() if line.startswith(f"[Node {rank}]") and "words" in line]
        assert len(shown) == len(lines)
        assert (
            f"--nnodes=2 --node_rank={rank} --nproc_per_node=8 --master_addr={leader} --master_port=29500" in shown[0]
        )
        assert any(f"--machine_rank={rank} --num_processes=16 --main_process_ip={leader}" in line for line in shown)


@needs_guides
def test_saturn_s_tf_config_names_every_node_and_this_one(cluster: Rehearsed, work: Path) -> None:
    (work / "config.py").write_text(tf_config_snippet() + "print(os.environ['TF_CONFIG'])\n")
    done = cluster.run("run", "--launcher", "plain", "--workdir", str(work), "--", "config.py")
    assert done.exit_code == 0, done.text
    workers = [f"{cluster.name}-{slot}.nodes.clusterctl.svc.cluster.local:5000" for slot in range(2)]
    for rank in range(2):
        wanted = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        assert json.dumps(wanted) in done.stdout
