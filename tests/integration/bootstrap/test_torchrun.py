"""torchrun over two nodes of two processes, started from nothing but what the nodes' environment says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clusterctl_rehearsal.region.torch_share import IN_MACHINES

from tests.integration.bootstrap.bootstrapped import Answer, Bootstrapped

EXAMPLE = Path(__file__).parents[3] / "examples" / "all_reduce" / "torch_gloo.py"
PAIR = range(2)
LAUNCH = (
    f"PYTHONPATH={IN_MACHINES} OMP_NUM_THREADS=1 python3 -m torch.distributed.run --nnodes $NNODES "
    "--node-rank $NODE_RANK --nproc-per-node $NPROC_PER_NODE"
)
BACKENDS = {
    "static": "--rdzv-backend static --master-addr $MASTER_ADDR --master-port $MASTER_PORT",
    "c10d": "--rdzv-backend c10d --rdzv-id $CLUSTERCTL_ID --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT",
}


@pytest.fixture(scope="module")
def pair(trio: Bootstrapped) -> Iterator[Bootstrapped]:
    """Slots 0 and 1, told that they are two nodes with two GPUs each."""
    if trio.ssh(0, f"test -d {IN_MACHINES}").code != 0:
        pytest.fail("no torch for the machines: run scripts/torch first")
    before = {slot: trio.status(slot)["generation"] for slot in PAIR}
    for slot in PAIR:
        assert trio.push(slot, generation=before[slot] + 1, nodes=2, gpus_per_node=2).json["ok"]
    yield trio
    for slot in PAIR:
        trio.push(slot, generation=before[slot] + 2, nodes=3, gpus_per_node=8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_processes_add_up(pair: Bootstrapped, backend: str) -> None:
    command = f"cat >torch_gloo.py && {LAUNCH} {BACKENDS[backend]} torch_gloo.py"

    def launch(slot: int) -> Answer:
        return pair.ssh(slot, command, stdin=EXAMPLE.read_text(), timeout_s=150)

    with ThreadPoolExecutor(len(PAIR)) as pool:
        answers = list(pool.map(launch, PAIR))
    assert [answer.code for answer in answers] == [0, 0], answers
    said = "".join(answer.out for answer in answers)
    seen = re.findall(r"rank (\d) of 4 on (\S+): torch all-reduce sum 15, all ranks took part", said)
    assert sorted(rank for rank, _ in seen) == ["0", "1", "2", "3"], said
    assert {node for _, node in seen} == {pair.node(0), pair.node(1)}
    if backend == "static":  # c10d gives ranks in the order of arrival
        assert dict(seen)["0"] == pair.node(0)


def test_ranks_follow_the_first_rank_of_each_node(pair: Bootstrapped) -> None:
    """Without a launcher: what each node's environment says is enough to number all processes."""
    script = "for local in $(seq 0 $((NPROC_PER_NODE - 1))); do echo $((CLUSTERCTL_FIRST_RANK + local)); done"
    numbers = [pair.output(slot, f"sh -c {shlex.quote(script)}").split() for slot in PAIR]
    assert numbers == [["0", "1"], ["2", "3"]]
