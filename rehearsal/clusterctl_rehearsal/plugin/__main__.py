"""`python -m clusterctl_rehearsal.plugin`: what the engine starts when it wants `aws`."""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl_infra.provider.grpc_skeleton import EngineLog, run_as_process

from clusterctl_rehearsal.home import current_home
from clusterctl_rehearsal.plugin.provider import RehearsalProvider
from clusterctl_rehearsal.plugin.stack_settings import stack_context
from clusterctl_rehearsal.region.client import RegionClient


def make_plugin(log: EngineLog) -> RehearsalProvider:
    """The provider for this process's environment."""
    home = current_home()
    context = stack_context(os.environ, home=home, folder=Path.cwd())
    return RehearsalProvider(log=log, client=RegionClient(home), context=context)


if __name__ == "__main__":
    run_as_process(make_plugin)
