"""What nodes say of jobs when all is well."""

from __future__ import annotations

from typing import Any  # JSON values

JOB_STATE = {
    "state": "failed",
    "since_s": 1795255200.5,
    "outcome": {
        "state": "failed",
        "exit_code": 7,
        "cause": "Node 0 (train-0): rank 0 (local rank 0) exited with code 7",
        "failure": {"slot": 0, "name": "train-0", "rank": 0, "local_rank": 0, "lines": ["no"], "error": None},
    },
}
JOBS: dict[str, Any] = {
    "jobs": [
        {
            "spec": {
                "job": "train",
                "cluster": "train",
                "cluster_id": "0123456789ab",
                "attempt": 1,
                "launcher": "torchrun",
                "launcher_options": ["--role", "trainer"],
                "shared": "/shared/clusterctl-jobs/train-0123456789ab/train",
                "by": "ada@laptop",
                "command": ["train.py", ""],
                "environment": {"EPOCHS": "3"},
                "secrets": [],
                "timeout_s": None,
                "image": "pytorch/pytorch:2.9",
                "image_id": "sha256:0123456789abcdef0123456789abcdef",
                "grace_s": 30.0,
                "snapshot": {"files": 1},
                "members": [{"slot": 0, "name": "train-0", "nproc": 8, "gpu_indices": [0, 1]}],
            },
            "state": JOB_STATE,
        }
    ],
    "image_id": "sha256:0123456789abcdef0123456789abcdef",
    "slot": 0,
    "cluster_id": "0123456789ab",
    "generation": 1,
    "gpus": 8,
    "phase": "ready",
    "engine": "",
    "shared": None,
    "holders": [{"job": "other", "gpus": None}],
    "is_name_taken": False,
    "ports_in_use": [28000],
    "state": {"state": "running", "since_s": 1795255200.5},
    "lock": "torch==2.9.0 --hash=sha256:0123\n",
    "interpreter": "/usr/bin/python3",
    "version": "3.12.3",
    "events": [{"at_s": 1795255200.5, "event": "rank ended", "attempt": 1, "rank": 3, "code": 7, "signal": None}],
}
TAKEN = {"gpus": [0, 1], "holders": [{"job": "other", "gpus": [2, 3]}]}
JOB_ROWS = [[1, 9, "1795255200.5 0 loss 0.1"], {"state": JOB_STATE}, {"over": JOB_STATE}]
_PLANS = [
    {
        "name": "first",
        "lead": "a",
        "ignores_nonlead": False,
        "tasks": [{"name": "a", "actions": [["RESCHEDULE", 7, 9]]}, {"name": "b", "actions": []}],
        "after": [],
    },
    {
        "name": "second",
        "lead": "c",
        "ignores_nonlead": True,
        "tasks": [{"name": "c", "actions": []}],
        "after": ["first"],
    },
]
WORKFLOW_JOBS: dict[str, Any] = {
    **JOBS,
    "jobs": [
        {
            "spec": {
                **JOBS["jobs"][0]["spec"],
                "job": f"wf-1-{task}",
                "workflow": {"id": "wf-1", "name": "wf", "task": task, "tries": 1, "plans": _PLANS},
            },
            "state": JOB_STATE,
        }
        for task in ("a", "b")
    ],
}
