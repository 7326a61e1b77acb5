"""Real launchers start jobs of two nodes, and how these end is what their ranks say, not what a launcher does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.jobs.job_folders import folder_with, mpi_words, new_name
from tests.integration.jobs.left_of_job import output_in_the_end
from tests.integration.rehearsed import Rehearsed

MPI_SUM = """\
import ctypes, os, sys
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
def of(name):
    return ctypes.byref(ctypes.c_char.in_dll(mpi, name))
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(of("ompi_mpi_comm_world"), ctypes.byref(rank))
mpi.MPI_Comm_size(of("ompi_mpi_comm_world"), ctypes.byref(size))
one = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(
    ctypes.byref(one), ctypes.byref(total), 1, of("ompi_mpi_int"), of("ompi_mpi_op_sum"), of("ompi_mpi_comm_world")
)
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK")
print("mpi rank", rank.value, "of", size.value, "sum", total.value, [os.environ[name] for name in names], flush=True)
print(repr(sys.argv[1:]), flush=True)
if "fail" in sys.argv and rank.value == 2:
    os._exit(7)
if "fail" in sys.argv or "wait" in sys.argv:
    import time
    time.sleep(600)
mpi.MPI_Finalize()
"""
ODD = ("two words", 'a "quote"', "$HOME", "")


@pytest.fixture
def cluster(process_pair: Rehearsed) -> Rehearsed:
    """Two process machines that are up."""
    return process_pair


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to start jobs from."""
    return folder_with(tmp_path, {"mpi_sum.py": MPI_SUM})


def mpi(work: Path, name: str, *words: str) -> tuple[str, ...]:
    return (*mpi_words(work, name), "--", "mpi_sum.py", *words)


def test_mpirun_adds_up_over_two_nodes_and_each_rank_s_output_is_its_own_node_s(cluster: Rehearsed, work: Path) -> None:
    done = cluster.run(*mpi(work, new_name(), *ODD))
    assert done.exit_code == 0, done.text
    for rank in range(4):
        places = [str(rank), "4", str(rank % 2), str(rank // 2)]
        printed = f"[rank {rank}] mpi rank {rank} of 4 sum 10 {places}"
        assert any(line.startswith(f"[Node {rank // 2}]") and printed in line for line in done.stdout.splitlines()), (
            done.text
        )
    assert done.stdout.count(repr(list(ODD))) == 4, done.text


def test_the_culprit_of_an_mpi_job_is_the_rank_that_failed_and_not_mpirun(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    done = cluster.run(*mpi(work, name, "fail"))
    assert done.exit_code == 7, done.text
    assert f"{name}: failed: Node 1 ({cluster.name}-1): rank 2 (local rank 0) exited with code 7" in done.stderr


def test_a_killed_mpirun_ends_the_job_and_nothing_of_it_is_left(cluster: Rehearsed, work: Path) -> None:
    name = new_name()
    options = list(mpi(work, name, "wait"))
    options.insert(1, "--detach")
    cluster.ok(*options)
    cluster.wait_for_output(name, "mpi rank", times=4)
    cluster.ok("ssh", "--node", "0", "--command", "pkill -KILL -x mpirun")
    waited = cluster.run("job", "wait", name)
    assert waited.exit_code not in (0, 255), waited.text
    left = f"grep -lsz '^CLUSTERCTL_JOB={name}$' /proc/[0-9]*/environ; ls /run/clusterctl/jobs; pgrep -x orted; true"
    assert output_in_the_end(cluster, left) == ""
