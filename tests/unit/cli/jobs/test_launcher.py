"""Which launcher is meant, and which of its flags are not a person's to give."""

from __future__ import annotations

import pytest
from clusterctl.jobs.launcher import Launch, chosen_launch
from clusterctl.jobs.launcher_flags import LOGS, NODES, NPROC, RESTARTS
from clusterctl_infra.errors import UsageError


@pytest.mark.parametrize(
    ("words", "launcher", "meant"),
    [
        (["train.py", "--lr", "1"], None, Launch(launcher="torchrun", command=("train.py", "--lr", "1"))),
        (["hostname"], None, Launch(launcher="plain", command=("hostname",))),
        (["train.py"], "plain", Launch(launcher="plain", command=("train.py",))),
        (["python3", "-m", "train"], "torchrun", Launch(launcher="torchrun", command=("python3", "-m", "train"))),
        (["torchrun", "train.py"], None, Launch(launcher="torchrun", command=("train.py",))),
        (
            ["torchrun", "--role", "a", "--use-agent-store", "--monitor-interval=1", "train.py", "--nnodes", "3"],
            None,
            Launch(
                launcher="torchrun",
                options=("--role", "a", "--use-agent-store", "--monitor-interval=1"),
                command=("train.py", "--nnodes", "3"),
            ),
        ),
        (["python3", "-m", "torch.distributed.run", "a.py"], None, Launch(launcher="torchrun", command=("a.py",))),
        (
            ["accelerate", "launch", "--mixed_precision", "bf16", "--use_fsdp", "--config_file=f.yaml", "a.py", "-x"],
            None,
            Launch(
                launcher="accelerate",
                options=("--mixed_precision", "bf16", "--use_fsdp", "--config_file=f.yaml"),
                command=("a.py", "-x"),
            ),
        ),
        (["train.py"], "deepspeed", Launch(launcher="deepspeed", command=("train.py",))),
        (
            ["deepspeed", "--no_local_rank", "train.py", "--deepspeed_config", "ds.json"],
            "deepspeed",
            Launch(
                launcher="deepspeed-runner",
                options=("--no_local_rank",),
                command=("train.py", "--deepspeed_config", "ds.json"),
            ),
        ),
        (
            ["mpirun", "--mca", "btl", "tcp,self", "-x", "A=1", "--report-bindings", "./hello", "-n", "3"],
            None,
            Launch(
                launcher="mpi",
                options=("--mca", "btl", "tcp,self", "-x", "A=1", "--report-bindings"),
                command=("./hello", "-n", "3"),
            ),
        ),
        (["python3", "-m", "train"], "jax", Launch(launcher="jax", command=("python3", "-m", "train"))),
        (["train.py"], "tensorflow", Launch(launcher="tensorflow", command=("train.py",))),
    ],
)
def test_the_launcher_is_known_by_the_program(words: list[str], launcher: str | None, meant: Launch) -> None:
    assert chosen_launch(words, launcher) == meant


@pytest.mark.parametrize(
    ("launcher", "flag", "reason"),
    [
        (("torchrun",), "--nproc_per_node=4", NPROC),
        (("torchrun",), "--nnodes", NODES),
        (("torchrun",), "--max-restarts", RESTARTS),
        (("torchrun",), "--max-r=3", RESTARTS),
        (("torchrun",), "--nn", NODES),
        (("torchrun",), "--te=3", LOGS),
        (("torchrun",), "--standalone", "the job may have several nodes"),
        (("torchrun",), "-m", "write: --launcher torchrun -- python3 -m NAME"),
        (("torchrun",), "-t", LOGS),
        (("torchrun",), "--local_ranks_filter=0", LOGS),
        (("torchrun",), "--duplicate-stdout-filters", LOGS),
        (("torchrun",), "--duplicate-stderr-filters", LOGS),
        (("torchrun",), "--logs-specs", LOGS),
        (("accelerate", "launch"), "--num_processes=8", NPROC),
        (("accelerate", "launch"), "--num_machines", NODES),
        (("accelerate", "launch"), "--same_network", "the nodes of a cluster have one network"),
        (("accelerate", "launch"), "-m", "write: --launcher accelerate -- python3 -m NAME"),
        (("deepspeed",), "--hostfile=h", NODES),
        (("deepspeed",), "-H", NODES),
        (("deepspeed",), "--include", NODES),
        (("mpirun",), "-np", NPROC),
        (("mpirun",), "-H", NODES),
        (("mpiexec",), "-n", NPROC),
        (("mpirun",), "--hostfile", NODES),
    ],
)
def test_a_flag_that_clusterctl_sets_itself_is_refused_with_the_reason(
    launcher: tuple[str, ...], flag: str, reason: str
) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_launch([*launcher, flag, "2", "train.py"], None)
    assert refused.value.message.endswith(f" {flag}: clusterctl sets it itself; {reason}")


@pytest.mark.parametrize(
    ("words", "launcher", "message"),
    [
        ([], None, "no program was named"),
        ([""], None, "no program was named"),
        (["train.py"], "torchrn", "did you mean torchrun"),
        (["train.py"], "slurm", "there is torchrun, accelerate, deepspeed"),
        (["srun", "train.py"], None, "srun as a launcher is not built yet"),
        (["accelerate", "train.py"], None, "write: accelerate launch SCRIPT"),
        (["mpirun", "--novel", "3", "./a"], None, "--novel: unknown flag"),
        (["mpirun", "./a", ":", "./b"], None, "a lone : as the start of another program"),
        (["./a"], "jax", "starts a Python script"),
        (["accelerate", "launch", "a.py"], "jax", "do not go together"),
        (["torchrun", "train.py"], "plain", "do not go together"),
        (["torchrun", "--role", "a"], None, "no program was named"),
    ],
)
def test_what_cannot_be_launched_is_refused(words: list[str], launcher: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen_launch(words, launcher)
