"""What scripts/torch and scripts/frameworks installed for machines: read here, as asking a machine takes a command."""

from __future__ import annotations

import os

import pytest
from clusterctl_bootstrap.kept_texts import cache_folder
from clusterctl_rehearsal.region.torch_share import torch_share
from framework_packages import framework_folder


def need_torch() -> None:
    """Fails the test where machines have none."""
    if not torch_share(cache_folder(os.environ)):
        pytest.fail("no torch for the machines: run scripts/torch first")


def need_framework(name: str) -> None:
    """Fails the test where machines do not have it."""
    if not framework_folder(name).is_dir():
        pytest.fail(f"no {name} for the machines: run scripts/frameworks {name} first")
