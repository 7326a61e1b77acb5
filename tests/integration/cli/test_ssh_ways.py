"""The ways to run a command on several nodes: gathered, with input, with variables, failing fast, from a file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.waiting import has_ended

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

WHO = "${SSH_CONNECTION% *}"


def test_a_command_without_a_node_runs_on_all(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "echo", "x")
    assert sorted(done.stdout.splitlines()) == [f"[train-{n}] x".encode() for n in range(4)]


def test_gathered_outputs_are_folded_and_the_odd_one_is_marked(steady_cluster: LoopbackCluster) -> None:
    line = f'case "{WHO}" in *.3) echo 6.8.0-1019;; *) echo 6.8.0-1021;; esac'
    done = steady_cluster.run("ssh", "--gather", line)
    assert done.stdout.decode() == (
        f"train-[0-1,3] (3 nodes)\n  6.8.0-1021\ntrain-2\n  {'6.8.0-1019':<48}  ← differs\n"
    )
    assert done.returncode == 0


def test_gathered_output_has_a_bound_and_says_so(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--gather", "--node", "0-1", "head -c 40000000 /dev/zero; echo end")
    assert 16 * 1024 * 1024 < len(done.stdout) < 17 * 1024 * 1024
    assert done.stdout.startswith(b"train-[0-1] (2 nodes)\n")
    assert done.stdout.endswith(b"[truncated: there was more]\n")


def test_what_is_piped_in_goes_to_every_node_whole(steady_cluster: LoopbackCluster) -> None:
    data = os.urandom(3_000_000)
    done = steady_cluster.run("ssh", "--gather", "md5sum; sleep 0.1; echo late", stdin=data)
    sums = subprocess.run(["md5sum"], input=data, capture_output=True, check=True).stdout
    assert done.stdout == b"train-[0-3] (4 nodes)\n  " + sums + b"  late\n"


def test_a_node_that_reads_nothing_does_not_hold_up_the_others(steady_cluster: LoopbackCluster) -> None:
    line = f'case "{WHO}" in *.1) sleep 300;; *) wc -c;; esac'
    done = steady_cluster.run("ssh", "--timeout", "8", line, stdin=b"x" * 20_000_000)
    assert sorted(done.stdout.splitlines()) == [f"[train-{n}] 20000000".encode() for n in (1, 2, 3)]
    assert b"train-0 ended at --timeout" in done.stderr


def test_a_single_dash_is_a_script_from_the_input(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--gather", "-", stdin=b"greeting=hello\necho $greeting\nexit 0\n")
    assert done.stdout == b"train-[0-3] (4 nodes)\n  hello\n"


def test_variables_reach_the_command_as_they_are(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run(
        "ssh", "--node", "1", "--env", "A=x y'z$", "--env", "B=", 'printf \'%s|%s\' "$A" "${B-unset}"'
    )
    assert done.stdout == b"x y'z$|"


def test_the_first_failure_ends_the_others_with_fail_fast(steady_cluster: LoopbackCluster) -> None:
    line = f'case "{WHO}" in *.2) exit 3;; *) echo $$; exec sleep 300;; esac'
    done = steady_cluster.run("ssh", "--fail-fast", line)  # `sleep 300` would outlast the run's own time
    first, *others = done.stderr.decode().splitlines()[1:]
    assert first == "  train-1 exit 3"
    assert others, "they ran, or were on their way"
    assert all(line.endswith("--fail-fast") for line in others)
    assert done.returncode == 4
    assert all(has_ended(int(row.split()[1])) for row in done.stdout.splitlines())


def test_what_is_left_in_the_background_on_purpose_stays(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "0", "nohup sleep 300 >/dev/null 2>&1 & echo $!; wait_for=none")
    pid = int(done.stdout)
    assert not has_ended(pid, within_s=1.5)
    os.kill(pid, 9)


def test_waiting_for_own_background_work_ends(steady_cluster: LoopbackCluster) -> None:
    done = steady_cluster.run("ssh", "--node", "0", "sleep 0.1 & sleep 0.2 & wait; echo both")
    assert done.stdout == b"both\n"


def test_machines_from_a_file_are_reached(steady_cluster: LoopbackCluster, tmp_path: Path) -> None:
    file = tmp_path / "lab.json"
    rows = [
        {"name": f"lab-{n}", "address": f"127.0.17.{n + 1}", "host_key": host_key(steady_cluster, n)} for n in (0, 1)
    ]
    key = str(steady_cluster.folder / "login")
    file.write_text(json.dumps({"ssh": {"port": steady_cluster.port, "key_file": key}, "nodes": rows}))
    done = steady_cluster.run("ssh", "--inventory", str(file), "--gather", "echo hello")
    assert done.stdout == b"lab-[0-1] (2 nodes)\n  hello\n"


def test_a_file_that_lacks_something_is_told_all_of_it(steady_cluster: LoopbackCluster, tmp_path: Path) -> None:
    file = tmp_path / "lab.json"
    file.write_text(json.dumps({"nodes": [{"name": "a"}, 7]}))
    done = steady_cluster.run("ssh", "--inventory", str(file), "true")
    assert done.returncode == 2
    for problem in (b"nodes[0].host_key: missing", b"nodes[1]: 7 is no node"):
        assert problem in done.stderr


@pytest.mark.parametrize("flag", ["--gather", "--json", "--sudo"])
def test_flags_of_a_command_are_refused_for_a_login(steady_cluster: LoopbackCluster, flag: str) -> None:
    done = steady_cluster.run("ssh", flag)
    assert done.returncode == 2
    assert b"are for a command" in done.stderr


def host_key(cluster: LoopbackCluster, slot: int) -> str:
    return cluster.inventory.nodes[slot].host_public_key
