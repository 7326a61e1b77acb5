"""Recorded clusters that are up when a test begins: made once by a worker, copied back for each test that wants them.

A plain `up` takes 4 to 5 seconds of the processor. For a test that is about what comes after it, the folder with the
stack, its state, its home and its rehearsed region is put back as it was after the first one. It lies in the same place
each time, as a state and a home hold paths; the region is a process that the next command starts.
"""

from __future__ import annotations

import copy
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # of a configuration

from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import running_region

from tests.integration.rehearsed import Rehearsed, new_stack, nothing_left, wait_until

KEPT_S = 600.0
"""An older one is made anew: its hour counts from its birth, and no test is to see the end of it."""


@dataclass(frozen=True, kw_only=True)
class ReadyCluster:
    """A cluster that is up, at rest."""

    cluster: Rehearsed
    place: Path
    """Where its folder has to be while it is used."""
    saved: Path
    """Its folder as it was after the `up`."""
    made_at: float


@dataclass(kw_only=True)
class ReadyClusters:
    """One for each configuration that was asked for, in a folder of the worker's own."""

    folder: Path
    _made: dict[str, ReadyCluster] = field(default_factory=dict)

    @contextmanager
    def restored(self, **config: Any) -> Iterator[Rehearsed]:
        """A cluster with this configuration as its first `up` left it; nothing of it is left afterwards."""
        key = json.dumps(config, sort_keys=True)
        ready = self._made.get(key)
        if ready is None or time.monotonic() - ready.made_at > KEPT_S:
            ready = self._made[key] = self._make(**config)
        shutil.copytree(ready.saved, ready.place, symlinks=True)
        cluster = copy.deepcopy(ready.cluster)
        try:
            with nothing_left(cluster.name, env=cluster.env):
                yield cluster
        finally:
            shutil.rmtree(ready.place)

    def _make(self, **config: Any) -> ReadyCluster:
        number = len(list(self.folder.iterdir()))
        place, saved = (self.folder / str(number) / name for name in ("used", "saved"))
        place.mkdir(parents=True)
        cluster = new_stack(place, machines="none", **config)
        try:
            cluster.up()
            stop_region(cluster)
        except BaseException:
            with nothing_left(cluster.name, env=cluster.env):
                raise
        place.rename(saved)
        return ReadyCluster(cluster=cluster, place=place, saved=saved, made_at=time.monotonic())


def stop_region(cluster: Rehearsed) -> None:
    """Returns when its process is gone: a copy of its home has its id, and it would be taken for the copy's."""
    found = running_region(rehearsal_home(cluster.env))
    assert found is not None, "the `up` has used it"
    cluster.fault("stop-region")
    wait_until(lambda: not Path(f"/proc/{found['pid']}").exists(), what="the region has ended", timeout_s=30)
