"""torchrun over two nodes, started from nothing but what the nodes' environment says."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any  # what a membership holds

import pytest
from clusterctl_rehearsal.region.torch_share import IN_MACHINES

from tests.integration.bootstrap.bootstrapped import Answer, Bootstrapped, iso, wait_until

EXAMPLES = Path(__file__).parents[3] / "examples"
CHECKPOINT = EXAMPLES / "checkpoint" / "train.py"
pytestmark = pytest.mark.torch
PAIR = range(2)
TRIO = range(3)
LAUNCH = (
    "OMP_NUM_THREADS=1 timeout -k 5 140 python3 -m torch.distributed.run --nnodes $NNODES "
    "--node-rank $NODE_RANK --nproc-per-node $NPROC_PER_NODE"
)
BACKENDS = {
    "static": "--rdzv-backend static --master-addr $MASTER_ADDR --master-port $MASTER_PORT",
    "c10d": "--rdzv-backend c10d --rdzv-id $CLUSTERCTL_ID --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT",
}


@pytest.fixture(scope="module")
def pair(trio: Bootstrapped) -> Iterator[Bootstrapped]:
    """Slots 0 and 1, with a membership of two nodes of two GPUs each; at the end all three have one membership."""
    if trio.ssh(0, f"test -d {IN_MACHINES}").code != 0:
        pytest.fail("no torch for the machines: run scripts/torch first")
    push_next(trio, PAIR, nodes=2, gpus_per_node=2)
    yield trio
    push_next(trio, TRIO, nodes=3, gpus_per_node=8)


def push_next(trio: Bootstrapped, slots: range, **changes: Any) -> None:
    """Pushes the next membership to these slots, in one generation."""
    generation = max(trio.status(slot)["generation"] for slot in TRIO) + 1
    for slot in slots:
        assert trio.push(slot, generation=generation, **changes).json["ok"]


def launched(pair: Bootstrapped, backend: str, program: Path, *arguments: str) -> list[Future[Answer]]:
    """torchrun on both, each ended when its future is."""
    command = f"cat >{program.name} && {LAUNCH} {BACKENDS[backend]} {program.name} {' '.join(arguments)}"
    pool = ThreadPoolExecutor(len(PAIR))
    answers = [pool.submit(pair.ssh, slot, command, stdin=program.read_text(), timeout_s=200) for slot in PAIR]
    pool.shutdown(wait=False)
    return answers


def wait_until_all_ask(pair: Bootstrapped, answers: list[Future[Answer]], per_node: int) -> None:
    """Returns when all ranks have asked for a warning; four at once take long to load torch on few processors."""

    def asking() -> list[int]:
        ended = [answer.result() for answer in answers if answer.done()]
        assert not ended, ended
        return [len(pair.ssh(slot, "ls /run/clusterctl/warn").out.split()) for slot in PAIR]

    wait_until(lambda: asking() == [per_node] * 2, lambda: f"{asking()} processes ask for a warning", 120, pause_s=1)


def test_ranks_follow_the_first_rank_of_each_node(pair: Bootstrapped) -> None:
    """Without a launcher: what each node's environment says is enough to number all processes."""
    script = "for local in $(seq 0 $((NPROC_PER_NODE - 1))); do echo $((CLUSTERCTL_FIRST_RANK + local)); done"
    numbers = [pair.output(slot, f"sh -c {shlex.quote(script)}").split() for slot in PAIR]
    assert numbers == [["0", "1"], ["2", "3"]]


def test_a_training_saves_its_state_before_the_deadline_and_goes_on_from_there(pair: Bootstrapped) -> None:
    """All processes meet by both of torchrun's backends: each step is an all-reduce, so all save at the same one.

    Two ranks on each node save, and one on each goes on from there: every rank takes seconds to load torch.
    """
    steps: list[int] = []
    for backend, numbers in (("static", [["0", "1"], ["2", "3"]]), ("c10d", [["0"], ["1"]])):
        per_node = len(numbers[0])
        push_next(pair, PAIR, nodes=2, gpus_per_node=per_node)
        answers = launched(pair, backend, CHECKPOINT, "state.pt")
        wait_until_all_ask(pair, answers, per_node)
        push_next(pair, PAIR, nodes=2, gpus_per_node=per_node, deadline=iso(time.time() + 300))
        ended = [future.result() for future in answers]
        assert [answer.code for answer in ended] == [0, 0], ended
        begun = {step for answer in ended for step in re.findall(r"begins at step (\d+)", answer.out)}
        assert begun == {str(steps[0] if steps else 0)}, "all ranks go on from what was saved"
        saved = [re.findall(r"rank (\d): saved at step (\d+)", answer.out) for answer in ended]
        (step,) = {step for ranks in saved for _, step in ranks}
        by_node = [sorted(rank for rank, _ in ranks) for ranks in saved]
        # c10d numbers nodes in the order of arrival, the static backend by slot.
        assert by_node == numbers or (backend == "c10d" and by_node == numbers[::-1]), ended
        writer = next(slot for slot in PAIR if "0" in by_node[slot])
        if not steps:
            assert pair.ssh(1 - writer, "test -e state.pt").code == 1, "rank 0 alone writes"
        pair.output(1 - writer, f"rsync -a {pair.node(writer)}:state.pt .")  # in the place of storage that nodes share
        steps.append(int(step))
    assert 0 < steps[0] < steps[1]
