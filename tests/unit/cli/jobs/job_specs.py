"""A job on slots 1 and 3 of a cluster of four, as its nodes read it."""

from __future__ import annotations

from typing import Any  # JSON

RANK_END: dict[str, Any] = {
    "rank": 4,
    "local_rank": 0,
    "at_s": 5.0,
    "code": 7,
    "signal": None,
    "lines": ["a", "b"],
    "error": None,
}
"""How a rank ended, as its parent writes it and a node reports it."""
ODD = ("two words", 'a "quote"', "a\nnewline", "$HOME", "")


def spec(**changes: Any) -> dict[str, Any]:
    """The spec, with these fields changed."""
    found: dict[str, Any] = {
        "version": 1,
        "job": "first",
        "attempt": 1,
        "cluster": "train",
        "cluster_id": "0123456789ab",
        "generation": 1,
        "by": "ada@laptop",
        "user": "ubuntu",
        "launcher": "torchrun",
        "launcher_options": ["--role", "a"],
        "command": ["train.py", *ODD],
        "members": [
            {"slot": 1, "name": "train-1", "address": "10.0.8.1", "gpus": 8, "nproc": 4},
            {"slot": 3, "name": "train-3", "address": "10.0.8.3", "gpus": 8, "nproc": 2},
        ],
        "master_port": 28100,
        "channel_port": 28101,
        "jax_port": 28102,
        "tf_ports": [28103, 28104, 28105, 28106],
        "environment": {"EPOCHS": "3"},
        "secrets": [],
        "timeout_s": None,
        "grace_s": 30.0,
        "is_sudo": False,
        "snapshot": {},
    }
    return {**found, **changes}
