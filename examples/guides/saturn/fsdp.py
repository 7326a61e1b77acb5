"""A regression whose weights FSDP shards over ranks, by NCCL where there are GPUs, else by gloo. Run by torchrun."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

WIDTH, STEPS = 8, 100


def main() -> None:
    """Prints, on rank 0, how many weights each rank holds, and how far all are from those that made the data."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same first weights everywhere
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False).to(device)
    fully_shard(model, mesh=init_device_mesh(device, (ranks,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    inputs = torch.randn(64, WIDTH, generator=torch.Generator().manual_seed(rank)).to(device)  # of its own
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), 3.0 * inputs).backward()
        optimizer.step()
    held: list[int] = [0] * ranks
    dist.all_gather_object(held, model.weight.to_local().numel())
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        off = (whole["weight"] - 3.0 * torch.eye(WIDTH)).abs().max().item()
        print(f"{ranks} ranks hold {held} weights: they are {off:.3f} off", flush=True)
    dist.barrier()  # so that no thread of gloo works while Python ends: docs/jobs.md
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
