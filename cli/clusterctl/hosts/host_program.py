"""The program that makes a host a node, as one argument for `python3 -c`: no file has to be put there first."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

PACKAGE = "clusterctl.on_node.host"
MODULES = ("commands", "mounts")
"""In an order in which each imports only earlier ones."""
LOADER = """\
import sys, types
for name, text in {texts!r}:
    module = sys.modules[name] = types.ModuleType(name)
    parent, _, last = name.rpartition(".")
    module.__path__ = []
    if parent:
        setattr(sys.modules[parent], last, module)
    exec(compile(text, name, "exec"), module.__dict__)
"""


@cache
def host_program() -> str:
    """The program's text, for `python3 -c TEXT VERB`."""
    parts = PACKAGE.split(".")
    packages = [(".".join(parts[: depth + 1]), "") for depth in range(len(parts))]
    modules = [(f"{PACKAGE}.{name}", _text(name)) for name in MODULES]
    return LOADER.format(texts=[*packages, *modules]) + _text("__main__")


def _text(name: str) -> str:
    return (files(PACKAGE) / f"{name}.py").read_text(encoding="utf-8")
