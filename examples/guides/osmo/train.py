"""What the guide's workflows train: all ranks together fit a line to random points, and rank 0 keeps a snapshot of it.

It needs nothing but Python, so that sixteen ranks fit on the computer of a rehearsal: rank 0 averages what the ranks
send, which is torch.distributed's all_reduce without torch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import time
from pathlib import Path

MEET_S = 120.0
RATE = 0.5


class Ranks:
    """All ranks of the training; rank 0 listens beside torchrun's own port."""

    def __init__(self, rank: int, size: int, address: tuple[str, int]) -> None:
        self.rank, self.size = rank, size
        if rank == 0:
            with socket.create_server(("", address[1]), backlog=size) as server:
                server.settimeout(MEET_S)
                connections = [server.accept()[0] for _ in range(size - 1)]
        else:
            connections = [connected(address)]
        self._streams = [connection.makefile("rw") for connection in connections]

    def mean(self, numbers: list[float]) -> list[float]:
        """The mean of what all ranks give, the same on each."""
        if self.rank == 0:
            rows = [numbers, *(json.loads(stream.readline()) for stream in self._streams)]
            numbers = [sum(column) / self.size for column in zip(*rows)]
        for stream in self._streams:
            stream.write(json.dumps(numbers) + "\n")
            stream.flush()
        return numbers if self.rank == 0 else json.loads(self._streams[0].readline())


def connected(address: tuple[str, int]) -> socket.socket:
    """A connection to rank 0, which may not listen yet."""
    until_s = time.monotonic() + MEET_S
    while True:
        try:
            return socket.create_connection(address, timeout=MEET_S)
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)


def main() -> None:
    """Trains for some epochs, going on from the snapshot if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--total_epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--snapshot_path", type=Path, default=Path("snapshot.pth"))
    flags = parser.parse_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    ranks = Ranks(rank, size, (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1))
    # All ranks go on from what rank 0 has: the others have snapshots of their own nodes, or none.
    slope, offset, begin = 0.0, 0.0, 0
    if rank == 0 and flags.snapshot_path.exists():
        slope, offset, begin = json.loads(flags.snapshot_path.read_text())
    slope, offset, done = (size * value for value in ranks.mean([slope, offset, begin]))
    numbers = random.Random(rank)
    for epoch in range(round(done), flags.total_epochs):
        inputs = [numbers.random() for _ in range(flags.batch_size)]
        errors = [slope * x + offset - (3 * x + 1) for x in inputs]
        gradient = [sum(e * x for e, x in zip(errors, inputs)) / len(inputs), sum(errors) / len(errors)]
        by_slope, by_offset = ranks.mean(gradient)
        slope, offset = slope - RATE * by_slope, offset - RATE * by_offset
        if rank == 0:
            beside = flags.snapshot_path.with_suffix(".new")
            beside.write_text(json.dumps([slope, offset, epoch + 1]))
            beside.replace(flags.snapshot_path)
            print(f"epoch {epoch + 1} of {flags.total_epochs}: error {sum(e * e for e in errors) / len(errors):.4f}")
    if rank == 0:
        print(f"trained on {size} ranks", flush=True)


if __name__ == "__main__":
    main()
