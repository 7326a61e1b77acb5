"""The command line of clusterctl, and what it offers to Python programs.

`clusterctl.nodes("train")` gives a cluster's nodes; `clusterctl.App("name")` holds functions that run on nodes.
"""

_WHERE = {
    "NodeGroup": "clusterctl.node_group.group",
    "nodes": "clusterctl.node_group.group",
    "App": "clusterctl.functions.app",
    "RemoteFunction": "clusterctl.functions.app",
    "RemoteError": "clusterctl_infra.errors",
    "Task": "clusterctl.functions.task",
    "get_task": "clusterctl.functions.task",
}


def __getattr__(name: str) -> object:
    """What programs use, loaded when it is used: the command line needs none of it, and Fabric takes 0.2 s to load."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 this file is loaded before all else, and should import nothing then

    return getattr(importlib.import_module(_WHERE[name]), name)
