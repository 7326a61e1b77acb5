"""Sum one number per process with torch.distributed (gloo): run by torchrun on every node.

Process r contributes 2**r, so the sum is 2**WORLD_SIZE - 1 only if every process took part.
"""

import socket
import sys

import torch
import torch.distributed as dist


def main() -> int:
    """0 when the sum proves that all processes took part, 1 otherwise."""
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    contribution = torch.tensor([2**rank], dtype=torch.int64)
    dist.all_reduce(contribution)
    total, expected = int(contribution.item()), 2**world - 1
    verdict = "all ranks took part" if total == expected else f"WRONG, expected {expected}"
    print(f"rank {rank} of {world} on {socket.gethostname()}: all-reduce sum {total}, {verdict}", flush=True)
    dist.destroy_process_group()
    return 0 if total == expected else 1


if __name__ == "__main__":
    sys.exit(main())
