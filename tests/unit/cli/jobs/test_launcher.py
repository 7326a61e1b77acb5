"""Which launcher is meant, and which of its flags are not a person's to give."""

from __future__ import annotations

import pytest
from clusterctl.jobs.launcher import OWNED, Launch, chosen_launch
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
    ],
)
def test_the_launcher_is_known_by_the_program(words: list[str], launcher: str | None, meant: Launch) -> None:
    assert chosen_launch(words, launcher) == meant


@pytest.mark.parametrize("flag", ["--nproc_per_node=4", "--nnodes", "--max-restarts", "--standalone", "-m", "-t"])
def test_a_flag_that_is_ours_is_refused_with_the_reason(flag: str) -> None:
    with pytest.raises(UsageError, match="clusterctl sees to that itself; ") as refused:
        chosen_launch(["torchrun", flag, "train.py"], None)
    assert any(refused.value.message.endswith(reason) for reason in OWNED.values())


@pytest.mark.parametrize(
    ("words", "launcher", "told"),
    [
        ([], None, "no program was named"),
        ([""], None, "no program was named"),
        (["train.py"], "torchrn", "did you mean torchrun"),
        (["train.py"], "slurm", "there is torchrun and plain"),
        (["accelerate", "launch", "train.py"], None, "accelerate as a launcher is not built yet"),
        (["torchrun", "train.py"], "plain", "do not go together"),
        (["torchrun", "--role", "a"], None, "no script was named"),
    ],
)
def test_what_cannot_be_launched_is_refused(words: list[str], launcher: str | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        chosen_launch(words, launcher)
