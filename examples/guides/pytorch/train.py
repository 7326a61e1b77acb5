"""A regression under DistributedDataParallel: by NCCL where there are GPUs, else by gloo. Run by torchrun."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 50


def main() -> None:
    """Prints, on rank 0, how far the weight is from the one that made the data."""
    has_gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpus else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpus else torch.device("cpu")
    torch.manual_seed(dist.get_rank())  # every rank has data of its own
    inputs = torch.randn(64, 1, device=device)
    targets = 3.0 * inputs
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        off = abs(model.module.weight.item() - 3.0)
        print(f"{dist.get_world_size()} ranks: the weight is {off:.3f} off", flush=True)
    dist.barrier()  # so that no thread of gloo works while Python ends: docs/jobs.md
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
