"""What is sent to the nodes for one call: the pickled function with its arguments, the program that runs it, and the
folder of the function's module."""

from __future__ import annotations

import inspect
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any  # what people pass

import cloudpickle
from clusterctl_infra.errors import UsageError

from clusterctl.jobs.snapshot import ASK_BYTES, Snapshot, take_snapshot
from clusterctl.on_node.function import call

STAND_IN = "from clusterctl.on_node.function.in_job import App, Function, StartedWithinAJob, get_task\n"
"""The module `clusterctl` that a function finds on the nodes, in place of the real one."""
FLOW_STAND_IN = "from clusterctl.on_node.function.in_job import App as FlowApp, Flow\n"
MAIN = """\
import sys
from pathlib import Path

from clusterctl.on_node.function.call import main

sys.exit(main(Path(__file__).resolve().parent))
"""
REQUIREMENTS = "requirements.txt"
MIB = 1024 * 1024


def pickled_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """The call as bytes: a line of JSON, then the pickle of (function, args, kwargs).

    Raises TypeError for arguments that the function does not take, and UsageError, naming what cannot be pickled.
    """
    inspect.signature(function).bind(*args, **kwargs)
    words = {"python": call.python_version(), "function": function.__name__}
    content = io.BytesIO()
    content.write(json.dumps(words).encode() + b"\n")
    try:
        cloudpickle.dump((function, tuple(args), dict(kwargs)), content)
    except Exception as e:
        what, why = _unpicklable(function, args, kwargs) or (f"{function.__name__}()", e)
        message = f"{what} cannot go to the nodes, it cannot be pickled: {type(why).__name__}: {why}"
        raise UsageError(message, hint="make it within the function, or pass a path") from e
    return content.getvalue()


def module_folder(function: Callable[..., Any]) -> Path | None:
    """The folder from which the function's module is imported; None if it has no file, or is an installed package."""
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    folder = Path(file).resolve().parent
    package = getattr(module, "__package__", None) or ""
    for _ in filter(None, package.split(".")):
        folder = folder.parent
    return None if {"site-packages", "dist-packages"} & set(folder.parts) else folder


@contextmanager
def staged(folder: Path | None, own: Mapping[str, bytes], *, including: Sequence[str]) -> Iterator[Snapshot]:
    """A snapshot of a temporary folder: the chosen files of `folder`, and the call's own files (`own_files`).

    Raises UsageError.
    """
    with TemporaryDirectory(prefix="clusterctl-function-") as name:
        target = Path(name)
        chosen = None if folder is None else _chosen(folder, including)
        if chosen is not None:
            _copy(chosen, target)
        for path, written in own.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(written)
        names = sorted({*(() if chosen is None else chosen.files), *own})
        size = sum((target / each).lstat().st_size for each in names)
        yield Snapshot(folder=target, files=tuple(names), size_bytes=size)


def _chosen(folder: Path, including: Sequence[str]) -> Snapshot:
    chosen = take_snapshot(folder, including=including)
    if chosen.size_bytes > ASK_BYTES:
        size = f"{folder}: {chosen.size_bytes // MIB:,} MiB in {len(chosen.files)} files"
        raise UsageError(
            f"{size} would go to every node, and at most {ASK_BYTES // MIB} MiB do",
            hint="@app.function(workdir=…), or a .gitignore",
        )
    return chosen


def _copy(chosen: Snapshot, target: Path) -> None:
    """Copies the chosen files to `target`. Raises UsageError for a file that cannot be read."""
    for file in chosen.files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(chosen.folder / file, target / file, follow_symlinks=False)
        except (PermissionError, FileNotFoundError) as e:
            message = f"{chosen.folder / file} cannot be read ({e.strerror}), and would go to the nodes"
            raise UsageError(message, hint="@app.function(workdir=…), or a .gitignore") from e


def own_files(content: bytes, requirements: Sequence[str]) -> dict[str, bytes]:
    """Path → content of the call's own files. cloudpickle is among them, as nodes may not reach a package index."""
    found = {f"{call.FOLDER}/{path}": text for path, text in _in_own_folder(content).items()}
    if requirements:
        found[f"{call.FOLDER}/{REQUIREMENTS}"] = "".join(f"{line}\n" for line in requirements).encode()
    return found


def _in_own_folder(content: bytes) -> dict[str, bytes]:
    found = {
        call.MAIN: MAIN.encode(),
        call.CALL: content,
        "clusterctl/__init__.py": STAND_IN.encode(),
        "clusterctl/flow.py": FLOW_STAND_IN.encode(),
        "clusterctl/on_node/__init__.py": b"",
    }
    for package, place in (
        ("clusterctl.on_node.function", "clusterctl/on_node/function"),
        ("cloudpickle", "cloudpickle"),
    ):
        for file in files(package).iterdir():
            if file.name.endswith(".py"):
                found[f"{place}/{file.name}"] = file.read_bytes()
    return found


def _unpicklable(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, Exception] | None:
    """(what, why): the first argument, or the first thing that the function uses, that cannot be pickled; None if each
    of them can."""
    name = function.__name__
    parts = [(f"argument {place + 1} of {name}()", value) for place, value in enumerate(args)]
    parts += [(f"argument {key} of {name}()", value) for key, value in kwargs.items()]
    if inspect.isfunction(function):
        used = inspect.getclosurevars(function)
        parts += [(f"{key}, which {name}() uses,", value) for key, value in {**used.nonlocals, **used.globals}.items()]
    for what, value in parts:
        try:
            cloudpickle.dumps(value)
        except Exception as e:  # noqa: BLE001 pickling runs code of the value
            return what, e
    return None
