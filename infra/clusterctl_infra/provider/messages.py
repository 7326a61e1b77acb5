"""Pulumi's gRPC messages, without the SDK around them: a provider uses nothing else of the SDK.

`import pulumi.runtime.proto` first runs the packages above it, the whole SDK, which takes more than half of a plugin's
start. Their folders alone are enough to find the messages.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc

__all__ = ["engine_pb2", "engine_pb2_grpc", "plugin_pb2", "provider_pb2", "provider_pb2_grpc"]
_PACKAGES = ("pulumi", "pulumi.runtime", "pulumi.runtime.proto")


@contextmanager
def _folders_alone() -> Iterator[None]:
    """While entered, Pulumi's packages are empty ones that only say where their folders are; a loaded SDK stays."""
    if "pulumi" in sys.modules:
        yield
        return
    found = importlib.util.find_spec("pulumi")
    if found is None or found.origin is None:
        raise ImportError("pulumi, which clusterctl depends on, is not installed")
    root = Path(found.origin).parent.parent
    for name in _PACKAGES:
        package = ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = package
    try:
        yield
    finally:
        for name in _PACKAGES:  # whoever wants the SDK later gets it whole, with these messages in it
            del sys.modules[name]


with _folders_alone():
    for _name in __all__:
        globals()[_name] = importlib.import_module(f"pulumi.runtime.proto.{_name}")
