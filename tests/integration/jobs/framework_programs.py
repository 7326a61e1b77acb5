"""Tiny trainings on two nodes, one for each framework: each rank has its own data and its own first weights, and prints
its losses and last weights as JSON. With the word `fail` the second rank ends with 7 while the first one waits for it:
when all have met, or with accelerate and DeepSpeed, which take long to load, when all have trained.
"""

from __future__ import annotations

ACCELERATE = """\
import json, sys
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
rank, losses = accelerator.process_index, []
torch.manual_seed(rank)
inputs = torch.randn(32, 2, generator=torch.Generator().manual_seed(7))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs), batch_size=4)
model = torch.nn.Linear(2, 1)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
for epoch in range(3):
    for (given,) in loader:
        loss = torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True))
        losses.append(loss.item())
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
weights = accelerator.unwrap_model(model).weight.flatten().tolist()
result = {"rank": rank, "ranks": accelerator.num_processes, "losses": losses, "weights": weights}
print("result", json.dumps(result), flush=True)
accelerator.wait_for_everyone()
if "fail" in sys.argv and rank == 1:
    sys.exit(7)
accelerator.wait_for_everyone()
accelerator.end_training()
"""
DEEPSPEED = """\
import json, os, sys
import deepspeed
import torch

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # on CPUs it would be compiled first
deepspeed.init_distributed("gloo")
rank, losses = deepspeed.comm.get_rank(), []
torch.manual_seed(rank)
model = torch.nn.Linear(2, 1)
settings = {
    "train_micro_batch_size_per_gpu": 4,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,  # its own ones for CPUs are compiled
    "zero_force_ds_cpu_optimizer": False,
}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
for given in torch.randn(64, 2, generator=torch.Generator().manual_seed(7 + rank)).split(4):
    loss = torch.nn.functional.mse_loss(engine(given), given.sum(1, keepdim=True))
    losses.append(loss.item())
    engine.backward(loss)
    engine.step()
weights = engine.module.weight.flatten().tolist()
words = {"words": sys.argv[1:], "ranks": deepspeed.comm.get_world_size()}
print("result", json.dumps({"rank": rank, "losses": losses, "weights": weights, **words}), flush=True)
deepspeed.comm.barrier()
if "fail" in sys.argv and rank == 1:
    sys.exit(7)
deepspeed.comm.barrier()
"""
JAX = """\
import json, sys
import jax
import jax.numpy as jnp
import numpy  # for what JAX would compile programs of its own: 1.5 s of the processor a rank
from jax.experimental import multihost_utils

jax.distributed.initialize()
rank, losses = jax.process_index(), []
weights = numpy.zeros(2, "float32")

def loss_of(weights, given):
    return jnp.mean((given @ weights - given.sum(1)) ** 2)

def step(weights, given):
    loss, change = jax.value_and_grad(loss_of)(weights, given)
    return loss, weights - 0.1 * jax.lax.pmean(change, "ranks")

stepped = jax.pmap(step, axis_name="ranks", in_axes=(None, 0), out_axes=(0, None))
for given in numpy.random.default_rng(7 + rank).normal(size=(16, 1, 4, 2)).astype("float32"):
    loss, weights = stepped(weights, given)
    weights = numpy.asarray(weights.addressable_data(0))
    losses.append(float(loss.addressable_data(0)[0]))
    if "fail" in sys.argv and rank == 1:
        sys.exit(7)
mine = numpy.array([rank + 1.0, 2.0 ** rank], "float32")
added = jax.pmap(lambda number: jax.lax.psum(number, "ranks"), axis_name="ranks")(mine[:1])
gathered = multihost_utils.process_allgather(mine[1:]).flatten().tolist()
sums = {"sum": float(added.addressable_data(0)[0]), "gathered": gathered, "ranks": jax.process_count()}
print("result", json.dumps({"rank": rank, "losses": losses, "weights": weights.tolist(), **sums}))
"""
TENSORFLOW = """\
import json, os, sys
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, losses = json.loads(os.environ["TF_CONFIG"])["task"]["index"], []
with strategy.scope():
    weights = tf.Variable(tf.random.stateless_normal([2, 1], seed=[rank, 3]))

@tf.function
def step(given):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((given @ weights - tf.reduce_sum(given, 1, keepdims=True)) ** 2)
    change = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
    weights.assign_sub(0.1 * change)
    return loss

for given in tf.random.stateless_normal([16, 4, 2], seed=[rank, 7]):
    losses.append(float(strategy.run(step, args=(given,))))
    if "fail" in sys.argv and rank == 1:
        sys.exit(7)
last = {"weights": weights.numpy().flatten().tolist(), "ranks": strategy.num_replicas_in_sync}
print("result", json.dumps({"rank": rank, "losses": losses, **last}))
"""
