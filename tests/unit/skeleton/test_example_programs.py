"""What the programs of `examples` do with what a job tells their nodes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any  # a program's own names

import pytest
from clusterctl.on_node.job.launch import environment
from clusterctl.on_node.job.launchers import hostfile

from tests.unit.cli.jobs.job_specs import spec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DOMAIN = "nodes.clusterctl.svc.cluster.local"
OF_THE_CLUSTER = {
    "CLUSTERCTL_CLUSTER": "train",
    "SATURN_JOB_RUN": "train",
    "SATURN_INTERNAL_SUBDOMAIN": "nodes",
    "SATURN_NAMESPACE": "clusterctl",
}


def program(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path, **changes: Any) -> dict[str, Any]:
    """What the program defines where it runs on the first node of a job on slots 1 and 3."""
    job = spec(**changes)
    (folder / "hostfile").write_text(hostfile(job))
    for variable, value in environment(job, 0, OF_THE_CLUSTER, str(folder)).items():
        monkeypatch.setenv(variable, value)
    return runpy.run_path(str(EXAMPLES / name))


def test_the_ring_goes_over_the_job_s_nodes_in_the_order_of_their_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks need not be in the order of slots."""
    found = program("all_reduce/ring.py", monkeypatch, tmp_path, members=spec()["members"][::-1])
    assert [found["name_of"](rank) for rank in range(2)] == ["train-3", "train-1"]


def test_a_job_whose_first_node_is_not_what_saturn_s_name_of_rank_0_says_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program("guides/saturn/peers.py", monkeypatch, tmp_path, leader=f"train-1.{DOMAIN}")
    with pytest.raises(SystemExit, match=f"train-0.{DOMAIN} is the cluster's rank 0, and this job's is train-1"):
        found["refuse_other_leader"]()


@pytest.mark.parametrize("leader", ["10.0.8.1", "fd00::8:1"])
def test_a_job_that_knows_its_first_node_by_an_address_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leader: str
) -> None:
    found = program("guides/saturn/peers.py", monkeypatch, tmp_path, leader=leader)
    message = f"this job's rank 0 is at {leader}, and may not be train-0.{DOMAIN}: the nodes have another"
    with pytest.raises(SystemExit, match=message) as refused:
        found["refuse_other_leader"]()
    assert "without --node" not in str(refused.value)


def test_a_job_that_has_the_cluster_s_rank_0_is_let_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("guides/saturn/peers.py", monkeypatch, tmp_path, leader=f"train-0.{DOMAIN}")["refuse_other_leader"]()


class FakeTorch(ModuleType):
    """torch, as far as the example of a checkpoint needs it to save, in one rank of several."""

    def __init__(self, rank: int) -> None:
        super().__init__("torch")
        self.rank, self.met = rank, 0
        self.distributed = self
        self.__path__ = []

    def get_rank(self) -> int:
        return self.rank

    def barrier(self) -> None:
        self.met += 1

    def save(self, state: object, path: Path) -> None:
        path.write_text(f"{state} by rank {self.rank}")


def test_one_rank_of_all_writes_a_checkpoint_to_storage_that_nodes_share_and_the_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ranks = tmp_path / "checkpoint.pt", [FakeTorch(rank) for rank in (1, 0, 2)]
    for torch in ranks:
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "torch.distributed", torch)
        monkeypatch.setenv("LOCAL_RANK", "0")  # each on its own node
        runpy.run_path(str(EXAMPLES / "checkpoint/train.py"))["save"]({"step": 7}, path)
    assert path.read_text() == "{'step': 7} by rank 0"
    assert [torch.met for torch in ranks] == [1, 1, 1]
    assert list(tmp_path.iterdir()) == [path]
