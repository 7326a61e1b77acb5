"""What a stack's state calls its cluster: for a `down` whose cluster.yaml says neither name nor region any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.names import IDENTITY_TYPE

from clusterctl.engine.call import Engine
from clusterctl.engine.environment import engine_environment
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.home import Home


def names_in_state(stack: Stack, *, rehearse: bool, home: Home, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The name and the region of the cluster that the stack holds; None where it holds none. Raises EngineError."""
    environment = engine_environment(stack, rehearse=rehearse, home=home, environ=environ)
    state = Engine(stack=stack, environment=environment).export()
    return None if state is None else names_of_cluster(state, load_catalog().region_names)


def names_of_cluster(state: StackState, regions: Iterable[str]) -> tuple[str, str] | None:
    """The same, of a state; `regions`: all there are. Pure."""
    identity = state.find(IDENTITY_TYPE)
    zone = "" if identity is None else str(identity.outputs.get("zone") or "")
    # A zone's name begins with its region's: us-west-2b, and us-west-2-lax-1a.
    region = max((one for one in regions if zone.startswith(one)), key=len, default=zone[:-1])
    name = state.cluster_name
    return None if name is None or not region else (name, region)
