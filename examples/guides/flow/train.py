"""A regression under DistributedDataParallel, as a function: `python train.py`, or `python train.py CLUSTER`.

Without a cluster's name it brings up one of its own: two nodes with one GPU each.
"""

import os
import sys

import clusterctl

STEPS = 50
CLUSTER = sys.argv[1] if sys.argv[1:] else None
OWN = {"gpu": "h100:1", "max_price_per_hour": 10, "max_run_time_hours": 1} if CLUSTER is None else {"gpu": "h100:1"}

app = clusterctl.App("flow-example", region="us-west-2", access="private", terminate_on_exit=True)


@app.function(cluster=CLUSTER, num_instances=2, environment={"NCCL_DEBUG": "WARN"}, **OWN)
def train(learning_rate: float) -> dict[str, float]:
    """Trains; returns the number of ranks, and how far the weight is from the one that made the data."""
    import torch  # noqa: PLC0415 the caller need not have torch
    import torch.distributed as dist  # noqa: PLC0415
    from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415

    has_gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpus else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpus else torch.device("cpu")
    torch.manual_seed(dist.get_rank())  # every rank has data of its own
    inputs = torch.randn(64, 1, device=device)
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), 3.0 * inputs).backward()
        optimizer.step()
    off, ranks = abs(model.module.weight.item() - 3.0), dist.get_world_size()
    dist.barrier()  # so that no thread of gloo works while Python ends: docs/jobs.md
    dist.destroy_process_group()
    return {"ranks": ranks, "off": round(off, 3)}


if __name__ == "__main__":
    task = train.spawn(0.2) if CLUSTER else None
    if task is None:
        print(train.remote(0.2))
    else:
        for line in task.logs(follow=True):
            print(line)
        print(f"at most ${task.estimated_cost:.2f} on {task.num_instances} nodes")
        print(task.result())
