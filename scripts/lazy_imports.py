"""Modules that the product loads on use: the rules for `lazy_imports.toml`, and a measurement of what each row saves.

`python scripts/lazy_imports.py` measures every row again: the processor time that loading the module takes in a process
that has loaded `after` already, as the median of RUNS new processes. Other work on the machine hardly changes that.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("lazy_imports.toml")
LEAST_MS = 1.0
"""A module that loads faster than this is imported at the top of the file, like everything else."""
RUNS = 15
LOADERS = {"import_module", "__import__"}
_MEASURED = """
import importlib, pkgutil, time
for name in {after!r}:
    importlib.import_module(name)
began = time.process_time()
for name in {modules!r}:
    package = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for found in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{{package.__name__}}.{{found.name}}")
print((time.process_time() - began) * 1000)
"""


@dataclass(frozen=True, kw_only=True)
class LazyImport:
    """One row of the table."""

    file: str
    modules: tuple[str, ...]
    """What the call may load; `clusterctl.commands.*` is every module of that package."""
    saves_ms: float
    after: tuple[str, ...]
    """What a process that does not need `modules` has loaded by then."""
    written: str | None = None
    """The call's argument, if it is not a literal."""
    instead: str | None = None
    """What would be loaded without the call, if that is not `modules`."""

    @property
    def argument(self) -> str:
        """The call's argument as `ast` writes it."""
        return ast.unparse(ast.parse(self.written)) if self.written is not None else repr(self.modules[0])


def table(path: Path = TABLE) -> list[LazyImport]:
    """The rows. Raises KeyError, TypeError for an incomplete one."""
    rows = tomllib.loads(path.read_text())["import"]
    return [LazyImport(**{**row, "modules": tuple(row["modules"]), "after": tuple(row["after"])}) for row in rows]


def lazy_calls(text: str) -> list[tuple[int, str]]:
    """Line and argument of every call in the source that loads a module by its name."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in LOADERS:
                found.append((node.lineno, ast.unparse(node.args[0]) if node.args else ""))
    return sorted(found)


def lazy_breaches(texts: Mapping[str, str], rows: list[LazyImport]) -> Iterator[str]:
    """Calls without a row, rows without a call, and rows that save too little; `texts`: the source of each file."""
    known = {(row.file, row.argument) for row in rows}
    called = set()
    for file, text in texts.items():
        for line, argument in lazy_calls(text):
            called.add((file, argument))
            if (file, argument) not in known:
                advice = "import it at the top of the file, or measure what that saves and add a row"
                yield f"{file}:{line}: loads {argument} on use: {advice} to scripts/{TABLE.name}"
    for row in rows:
        if (row.file, row.argument) not in called:
            yield f"scripts/{TABLE.name}: {row.file} does not load {row.argument} on use"
        if row.saves_ms < LEAST_MS:
            yield f"scripts/{TABLE.name}: {row.file}: {row.argument} saves {row.saves_ms} ms, not {LEAST_MS:g}"


def loaded_on_use(file: str, rows: list[LazyImport], modules: Mapping[str, object]) -> set[str]:
    """Which of `modules` a file loads on use. Raises LookupError if a row names a module that their packages lack."""
    found: set[str] = set()
    for name in (name for row in rows if row.file == file for name in row.modules):
        matching = {name} & modules.keys()
        if name.endswith(".*"):
            matching = {module for module in modules if module.startswith(name.removesuffix("*"))}
        if not matching and name.partition(".")[0] in {module.partition(".")[0] for module in modules}:
            raise LookupError(f"scripts/{TABLE.name}: {file}: there is no module {name}")
        found |= matching
    return found


def measured_ms(row: LazyImport) -> float:
    """How many milliseconds of processor time it takes to load the row's modules."""
    modules = row.modules if row.instead is None else (row.instead,)
    code = _MEASURED.format(after=row.after, modules=modules)
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(RUNS + 1)
    ]
    return statistics.median(runs[1:])  # the first one may have compiled it


def main() -> int:
    for row in table():
        print(f"{measured_ms(row):6.1f} ms (the table says {row.saves_ms:g})  {row.file}: {row.argument}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
