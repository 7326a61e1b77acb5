"""Jobs on process machines: started, followed, explained and ended, and nothing of them left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # parsed JSON

import pytest

from tests.integration.jobs.installed import need_torch
from tests.integration.jobs.job_folders import folder_with, new_name
from tests.integration.jobs.left_of_job import left_in_the_end, left_of
from tests.integration.jobs.wheels import write_wheel
from tests.integration.rehearsed import CLUSTERCTL, ROOT, Done, Rehearsed, rehearsed

WORDS = """\
import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.environ["MASTER_ADDR"], os.environ.get("TOKEN"))
print("it has", len(os.environ.get("TOKEN", "")), "letters")
print(repr(sys.argv[1:]))
sys.exit(int(sys.argv[1]) if os.environ["RANK"] == "1" and sys.argv[1].isdigit() else 0)
"""
LONG = "import os, time\nprint('up', flush=True)\ntime.sleep(600)\n"
GPUS = "import os, time\nprint('up with', os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\ntime.sleep(600)\n"
FAKE_TORCHRUN = """\
import os, subprocess, sys
words = sys.argv[sys.argv.index("--no-python") + 1 :]
count = int(os.environ["NPROC_PER_NODE"])
first = int(os.environ["NODE_RANK"]) * count
places = [{"RANK": str(first + local), "LOCAL_RANK": str(local)} for local in range(count)]
ranks = [subprocess.Popen(words, env={**os.environ, "LOCAL_WORLD_SIZE": str(count), **place}) for place in places]
sys.exit(max(rank.wait() for rank in ranks))
"""
LINES, LINE_BYTES = 200, 20_000
LONG_LINES = f"""\
import os, pathlib, time
rank, folder = int(os.environ["RANK"]), pathlib.Path(os.environ["CLUSTERCTL_JOB_DIR"])
(folder / str(rank)).touch()
while not (folder / str(1 - rank)).exists():
    time.sleep(0.01)
for _ in range({LINES}):
    print("@%"[rank] * {LINE_BYTES})
"""
"""Two ranks that begin to print once both are there."""
WARNED = """\
import json, os, signal, time
signal.signal(signal.SIGUSR1, lambda number, frame: print("signalled", flush=True))
open("/run/clusterctl/warn/%d" % os.getpid(), "w").close()
print("up", flush=True)
while not os.path.exists(os.environ["CLUSTERCTL_WARNING_FILE"]):
    time.sleep(0.1)
print("read:", json.load(open(os.environ["CLUSTERCTL_WARNING_FILE"]))["why"], flush=True)
time.sleep(600)
"""
PROJECT = """\
[project]
name = "mine"
version = "0"
requires-python = ">=3.9"
dependencies = ["%s"]
[tool.uv]
no-index = true
find-links = ["wheels"]
"""
STOPPED_AHEAD_S = 21
"""Before the deadline: 20 s, and a grace of 1 s (docs/jobs.md)."""
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)\n"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Four process machines that are up, shared by the tests here; each starts jobs of its own names."""
    with rehearsed(tmp_path_factory.mktemp("jobs"), machines="process", nodes=4) as cluster:
        cluster.up()
        yield cluster


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to start jobs from."""
    return folder_with(
        tmp_path, {"words.py": WORDS, "long.py": LONG, "stubborn.py": STUBBORN, "gpus.py": GPUS, "warned.py": WARNED}
    )


def run_job(cluster: Rehearsed, work: Path, name: str, *arguments: str, env: dict[str, str] | None = None) -> Done:
    """`clusterctl run`, plainly; its end."""
    return cluster.run("run", "--launcher", "plain", "--name", name, "--workdir", str(work), *arguments, env=env)


def start_long(cluster: Rehearsed, work: Path, *arguments: str, ranks: int, program: str = "long.py") -> str:
    """The name of a job that runs until it is ended, once all of its ranks have spoken."""
    name = new_name()
    done = run_job(cluster, work, name, "--detach", *arguments, "--", program)
    assert done.exit_code == 0, done.text
    cluster.wait_for_output(name, "up", times=ranks)
    return name


def job(cluster: Rehearsed, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.ok("job", "show", name, "--json"))
    return found


def test_every_rank_gets_its_arguments_word_by_word_and_the_code_is_there(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    words = ("two words", 'a "quote"', "a\nnewline", "$HOME", "")
    done = run_job(cluster, work, name, "--secret", "TOKEN", "--", "words.py", *words, env={"TOKEN": "hush"})
    assert done.exit_code == 0, done.text
    assert done.stdout.count(repr(list(words))) == 4, done.text
    for rank in range(4):
        assert f"rank {rank} of 4 " in done.stdout
    assert done.stdout.count(" ***") == 4
    assert done.stdout.count("it has 4 letters") == 4
    assert "hush" not in done.text
    shown = cluster.ok("job", "show", name, "--json")
    assert "hush" not in shown
    assert json.loads(shown)["secrets"] == ["TOKEN"]
    assert f"{name}: succeeded" in done.stderr
    assert left_in_the_end(cluster, name) == ""


@pytest.mark.torch
def test_torchrun_adds_up_over_two_of_the_nodes(cluster: Rehearsed, work: Path) -> None:
    """Its ranks need no torch, and say the same as those of the example that does."""
    need_torch()
    (work / "sum.py").write_bytes((ROOT / "examples" / "all_reduce" / "ring.py").read_bytes())
    options = ("--nproc", "1", "--node", "1,3", "--workdir", str(work))
    done = cluster.run("run", *options, "--", "sum.py")
    assert done.exit_code == 0, done.text
    assert f"rank 0 of 2 on {cluster.name}-1: all-reduce sum 3" in done.stdout
    assert f"rank 1 of 2 on {cluster.name}-3: all-reduce sum 3" in done.stdout


def test_the_exit_code_is_the_culprit_s_and_its_node_is_named(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    done = run_job(cluster, work, name, "--node", "1,3", "--", "words.py", "7")
    assert done.exit_code == 7, done.text
    assert f"{name}: failed: Node 3 ({cluster.name}-3): rank 1 (local rank 0) exited with code 7" in done.stderr
    assert "['7']" in done.stderr


def test_a_killed_rank_ends_the_job_and_other_jobs_wait_for_it(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, ranks=4)
    refused = run_job(cluster, work, new_name(), "--node", "2", "--", "words.py", "x")
    assert refused.exit_code == 2, refused.text
    assert f"Node 2 ({cluster.name}-2): in use by the job {name}" in refused.stderr
    cluster.ok("ssh", "--node", "2", "--command", "pkill -KILL -fx 'python3 -u long.py'")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 128 + signal.SIGKILL, waited.text
    assert f"Node 2 ({cluster.name}-2): rank 2 (local rank 0) was killed by signal 9" in waited.stderr
    assert left_in_the_end(cluster, name) == ""


def write_fake_torchrun(work: Path) -> None:
    (work / "torch/distributed").mkdir(parents=True)
    for folder in ("torch", "torch/distributed"):
        (work / folder / "__init__.py").touch()
    (work / "torch/distributed/run.py").write_text(FAKE_TORCHRUN)


def test_long_lines_that_two_ranks_of_one_launcher_print_at_once_stay_whole(cluster: Rehearsed, work: Path) -> None:
    """The ranks have one stdout, the launcher's, and a pipe takes at most 4 KiB in one piece (pipe(7))."""
    write_fake_torchrun(work)
    (work / "lines.py").write_text(LONG_LINES)
    done = run_job(cluster, work, new_name(), "--launcher", "torchrun", "--node", "1", "--nproc", "2", "--", "lines.py")
    assert done.exit_code == 0, done.text
    lines = [line for line in done.stdout.splitlines() if "@" in line or "%" in line]
    assert Counter((line.count("@"), line.count("%")) for line in lines) == {
        (LINE_BYTES, 0): LINES,
        (0, LINE_BYTES): LINES,
    }


def test_a_killed_launcher_is_the_cause_and_its_ranks_end_with_it(cluster: Rehearsed, work: Path) -> None:
    write_fake_torchrun(work)
    name = new_name()
    done = run_job(
        cluster, work, name, "--launcher", "torchrun", "--node", "1-2", "--nproc", "1", "--detach", "--", "long.py"
    )
    assert done.exit_code == 0, done.text
    cluster.wait_for_output(name, "up", times=2)
    cluster.ok("ssh", "--node", "2", "--command", "pkill -KILL -f '[d]istributed.run'")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 128 + signal.SIGKILL, waited.text
    assert f"Node 2 ({cluster.name}-2): the launcher ended by signal 9 before its ranks did" in waited.stderr
    assert left_in_the_end(cluster, name) == ""


def test_a_killed_supervisor_ends_the_job_as_lost(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, "--node", "0-1", "--grace", "1s", ranks=2)
    cluster.ok("ssh", "--node", "1", "--command", f"pkill -KILL -f '[s]upervise {name}'")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 255, waited.text
    assert f"{name}: lost: Node 1" in waited.stderr
    assert left_in_the_end(cluster, name) == ""


def test_a_killed_coordinator_ends_the_job_as_lost(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, "--node", "2-3", "--grace", "1s", ranks=2)
    cluster.ok("ssh", "--node", "2", "--command", f"pkill -KILL -f '[k]eep {name}'")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 255, waited.text
    assert f"{name}: lost" in waited.stderr
    states = {node["state"] for node in job(cluster, name)["nodes"]}
    assert states == {"lost"}


def test_cancelling_twice_is_cancelling_once_and_outlives_ranks_that_ignore_it(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, "--grace", "1s", ranks=4, program="stubborn.py")
    for _ in range(2):
        done = cluster.run("job", "cancel", name)
        assert done.exit_code == 0, done.text
        assert f"{name}: cancelled" in done.stderr
    assert cluster.run("job", "wait", name).exit_code == 130
    assert left_in_the_end(cluster, name) == ""


def test_a_job_outlives_the_command_that_started_it_unless_that_is_told_to_end(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    argv = [CLUSTERCTL, "run", "--launcher", "plain", "--name", name, "--workdir", str(work), "--", "long.py"]
    with subprocess.Popen(
        argv, env=cluster.env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert b"up" in process.stdout.readline()
        process.kill()
    assert job(cluster, name)["state"] == "running"
    argv = [CLUSTERCTL, "job", "attach", name]
    with subprocess.Popen(
        argv, env=cluster.env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert b"up" in process.stdout.readline()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=60) == 130
    assert job(cluster, name)["state"] == "cancelled"


def test_a_command_inside_a_job_has_its_rank_s_place_and_ends_with_it(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, "--node", "1,3", "--env", "MINE=1", ranks=2)
    look = "echo $RANK $WORLD_SIZE $MINE $(pwd) $(id -un); cd $CLUSTERCTL_JOB_DIR; echo kept > note; ln -s . latest"
    done = cluster.run("job", "exec", name, "--rank", "1", "--", "sh", "-c", look + "; exit 5")
    assert (done.exit_code, done.stdout) == (5, f"1 2 1 /var/lib/clusterctl/jobs/{name}/code ubuntu\n")
    everywhere = cluster.ok("job", "exec", name, "--node", "all", "--", "sh", "-c", 'echo "rank $RANK"')
    assert sorted(everywhere.splitlines()) == [f"[{cluster.name}-1] rank 0", f"[{cluster.name}-3] rank 1"]
    numbered = cluster.ok("job", "exec", name, "--node", "all", "--numbers", "--", "echo", "up")
    assert sorted(numbered.splitlines()) == ["[Node 1] up", "[Node 3] up"]
    named = cluster.ok("job", "logs", name, "--names").splitlines()
    assert {line.partition("] ")[0] for line in named} == {f"[{cluster.name}-1", f"[{cluster.name}-3"}
    cluster.ok("job", "exec", name, "--", "sh", "-c", "setsid sleep 4321 >/dev/null 2>&1 &")
    cluster.ok("job", "cancel", name)
    assert left_in_the_end(cluster, name) == ""
    refused = cluster.run("job", "exec", name, "--", "true")
    assert refused.exit_code == 2, refused.text
    target = work.parent / "kept"
    cluster.ok("job", "cp", name, "--node", "3", str(target))
    assert (target / "note").read_text() == "kept\n"
    assert (target / "latest").readlink() == Path(), "a link to a folder comes as what it is"
    events = [row["event"] for row in json.loads(cluster.ok("job", "events", name, "--node", "3", "--json"))]
    assert events == ["preparing", "starting", "running", "stopping", "cancelled"]
    kept = cluster.home / "jobs" / f"{cluster.name}@rehearsal" / name / "node-3" / "attempt-1" / "output.000001"
    assert kept.read_text().endswith(" 1 up\n")


def test_a_time_out_ends_the_job(cluster: Rehearsed, work: Path) -> None:
    done = run_job(cluster, work, new_name(), "--node", "0", "--timeout", "1s", "--grace", "1s", "--", "long.py")
    assert done.exit_code == 124, done.text
    assert "timed out: it ran for the 1 s of --timeout" in done.stderr


def test_a_node_with_a_job_is_replaced_or_ended_by_force_alone(cluster: Rehearsed, work: Path) -> None:
    name = start_long(cluster, work, "--node", "1-2", ranks=2)
    rows = cluster.nodes().values()
    assert [row["jobs"] for row in rows] == [[], [name], [name], []]
    refused = cluster.run("replace", "--node", "2")
    assert refused.exit_code == 2, refused.text
    assert f"1 job would be lost, nothing was changed: {name} on 2" in refused.stderr
    smaller = cluster.run("up", str(cluster.folder), "--nodes", "2")
    assert smaller.exit_code == 2, smaller.text
    assert f"{name} on 2" in smaller.stderr
    assert job(cluster, name)["state"] == "running"
    forced = cluster.run("replace", "--node", "2", "--yes", "--force")
    assert forced.exit_code == 0, forced.text
    assert f"{name} on 2: lost with 1 machine" in forced.stderr
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 255, waited.text
    assert f"Node 2 ({cluster.name}-2) was lost" in waited.stderr


def test_jobs_of_some_gpus_run_side_by_side_and_a_job_of_whole_nodes_waits(cluster: Rehearsed, work: Path) -> None:
    names = [
        start_long(cluster, work, "--node", nodes, "--gpus", "3", ranks=ranks, program="gpus.py")
        for nodes, ranks in (("0", 1), ("0-1", 2))
    ]
    rows = [job(cluster, name)["nodes"] for name in names]
    assert [[row["gpu_indices"] for row in members] for members in rows] == [[[0, 1, 2]], [[3, 4, 5], [0, 1, 2]]]
    first, second = (cluster.ok("job", "logs", name) for name in names)
    assert "up with 0,1,2" in first
    assert "up with 3,4,5" in second
    assert "up with 0,1,2" in second
    refused = run_job(cluster, work, new_name(), "--node", "0", "--gpus", "3", "--", "words.py", "x")
    assert refused.exit_code == 2, refused.text
    assert f"in use by the jobs {', '.join(sorted(names))}; of its 8 GPUs 2 are free" in refused.stderr
    whole = ("--launcher", "plain", "--node", "0", "--wait", "2m", "--workdir", str(work), "--", "words.py", "x")
    with subprocess.Popen(
        [CLUSTERCTL, "run", *whole],
        env=cluster.env,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert any(b": waiting" in line for line in process.stderr)
        for name in names:
            cluster.ok("job", "cancel", name)
        process.communicate(timeout=90)
    assert process.returncode == 0


def test_a_job_s_requirements_are_there_before_it_starts(cluster: Rehearsed, work: Path) -> None:
    (work / "wheels").mkdir()
    write_wheel(work / "wheels", "tinypkg", "1.2")
    (work / "wanted.txt").write_text("--no-index\n--find-links wheels\ntinypkg>=1\n")
    (work / "uses.py").write_text("import tinypkg, os\nprint('has', tinypkg.VERSION, os.environ['MODE'])\n")
    name = new_name()
    file = {"command": ["uses.py"], "launcher": "plain", "node": "0", "name": name, "requirements": "wanted.txt"}
    (work / "job.yaml").write_text(
        json.dumps({**file, "env": {"MODE": 7}, "setup": "echo ready > $CLUSTERCTL_JOB_DIR/made"})
    )
    done = cluster.run("run", str(work / "job.yaml"))
    assert done.exit_code == 0, done.text
    assert "has 1.2 7" in done.stdout
    assert f"{name}: /var/lib/clusterctl/environments/" in done.stderr
    (work / "pyproject.toml").write_text(PROJECT % "tinypkg>=1")
    subprocess.run(["uv", "lock", "--offline"], cwd=work, env=cluster.env, check=True, timeout=60)
    locked = ("run", "--requirements", "pyproject.toml")
    done = cluster.run(*locked, "--name", new_name(), str(work / "job.yaml"))
    assert done.exit_code == 0, done.text
    assert "has 1.2 7" in done.stdout
    assert "resolving" not in done.stderr
    (work / "pyproject.toml").write_text(PROJECT % "tinypkg==1.2")
    refused = cluster.run(*locked, "--name", new_name(), str(work / "job.yaml"), env={"UV_OFFLINE": "1"})
    assert refused.exit_code == 2, refused.text
    assert "pyproject.toml: uv.lock does not fit it" in refused.stderr
    (work / "wanted.txt").write_text("--no-index\nnosuch\n")
    refused = cluster.run("run", "--name", new_name(), str(work / "job.yaml"))
    assert refused.exit_code == 1, refused.text
    assert "was not started" in refused.stderr
    assert "No matching distribution found for nosuch" in refused.stderr
    assert cluster.ok("ssh", "--node", "0", "--command", "ls /run/clusterctl/job-lease").strip() == ""


def test_the_deadline_ends_a_job_that_was_warned_and_its_output_outlives_the_cluster(
    cluster: Rehearsed, work: Path
) -> None:
    """The last test of this cluster, whose end it brings near."""
    name = start_long(cluster, work, "--node", "1,3", "--grace", "1s", ranks=2, program="warned.py")
    ends = datetime.now(UTC) + timedelta(seconds=STOPPED_AHEAD_S + 15)
    cluster.ok("extend", "--until", f"{ends:%Y-%m-%dT%H:%M:%SZ}")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code == 124, waited.text
    assert f"{name}: ended by deadline: the cluster reached its deadline" in waited.stderr
    assert job(cluster, name)["state"] == "ended by deadline"
    assert left_of(cluster, name) == "", "while the nodes live on"
    cluster.ok("extend", "10m")  # so that nodes are there when `down` asks for the output, however busy this machine is
    other = start_long(cluster, work, "--node", "0", ranks=1)
    cluster.down()
    shown = cluster.run("job", "show", other, "--json").stdout
    assert json.loads(shown)["state"] == "lost"
    assert "ended while it was running" in shown
    assert " up" in cluster.ok("job", "logs", other)
    logs = cluster.ok("job", "logs", name)
    for slot in (1, 3):
        own = [line for line in logs.splitlines() if line.startswith(f"[Node {slot}]")]
        assert sum(line.endswith("signalled") for line in own) == 1, logs
        assert sum(line.endswith("read: the cluster's deadline") for line in own) == 1, logs
