"""A training that saves its state when its node is about to end: run by torchrun on every node.

    clusterctl run examples/checkpoint/job.yaml

Its argument is the checkpoint's path, on storage that the nodes share; it goes on from the checkpoint, if there is one.
A step here only counts; yours trains.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

warned = threading.Event()


def ask_for_a_warning() -> None:
    """Has `warned` set when the node is about to end."""
    signal.signal(signal.SIGUSR1, lambda number, frame: warned.set())
    Path(f"/run/clusterctl/warn/{os.getpid()}").touch()


def ignore_warnings() -> None:
    """For the end: Python removes its handlers while it ends, and without one the signal would kill it."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def is_over() -> bool:
    """Whether any rank was warned; all ranks get the same answer at the same step."""
    flag = torch.tensor(int(warned.is_set()))
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag)


def save(state: dict[str, int], path: Path) -> None:
    """Writes a checkpoint that is whole or not there; rank 0 alone does, since all nodes share the storage."""
    if dist.get_rank() == 0:
        fresh = path.with_suffix(".new")
        torch.save(state, fresh)
        fresh.rename(path)
    dist.barrier()


def main(path: Path) -> int:
    """Trains until a rank is warned that its node ends, then saves."""
    dist.init_process_group("gloo")
    ask_for_a_warning()
    state = torch.load(path) if path.exists() else {"step": 0}
    print(f"rank {dist.get_rank()}: begins at step {state['step']}", flush=True)
    while not is_over():
        state["step"] += 1
        time.sleep(0.05)
    ignore_warnings()
    save(state, path)
    print(f"rank {dist.get_rank()}: saved at step {state['step']}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
