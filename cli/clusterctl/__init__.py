"""The command line of clusterctl. A Python program has a cluster's nodes by `clusterctl.nodes("train")`."""


def __getattr__(name: str) -> object:
    """`nodes` and what it gives, loaded on use: the command line needs none of it, and Fabric takes 0.2 s to load."""
    if name not in {"NodeGroup", "nodes"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 this file is loaded before all else, and imports nothing then

    return getattr(importlib.import_module("clusterctl.node_group.group"), name)
