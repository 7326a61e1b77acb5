"""Rules for the tree that no linter has: prints each breach, and how large the rehearsal is beside the product."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "product": ("cli/clusterctl", "infra/clusterctl_infra", "bootstrap/clusterctl_bootstrap"),
    "rehearsal": ("rehearsal/clusterctl_rehearsal",),
}
NODE = CHECKOUT / "bootstrap" / "clusterctl_bootstrap" / "node"
MOST_LINES = 400
VAGUE_NAMES = {"utils", "helpers", "common", "misc", "manager", "base"}
REHEARSAL_SHARE = 0.60  # docs: the stand-in is to stay small beside what it stands in for


def main() -> int:
    breaches = [*file_breaches(), *node_breaches()]
    for breach in breaches:
        print(breach)
    lines = {kind: sum(count_lines(path) for path in counted(kind)) for kind in PACKAGES}
    share = lines["rehearsal"] / max(lines["product"], 1)
    verdict = "" if share <= REHEARSAL_SHARE else f", aim: at most {REHEARSAL_SHARE:.0%}"
    print(f"lines: product {lines['product']}, rehearsal {lines['rehearsal']} ({share:.0%} of the product{verdict})")
    return 1 if breaches else 0


def file_breaches() -> Iterator[str]:
    for kind in PACKAGES:
        for path in sources(kind):
            shown = path.relative_to(CHECKOUT)
            text = path.read_text()
            if (length := len(text.splitlines())) > MOST_LINES:
                yield f"{shown}: {length} lines, split it (at most {MOST_LINES})"
            if path.stem in VAGUE_NAMES:
                yield f"{shown}: says nothing, name it after what it holds"
            if path.name == "__init__.py" and imported_names(text):
                yield f"{shown}: imports {', '.join(imported_names(text))}; package files import nothing"


def node_breaches() -> Iterator[str]:
    """The agent runs on a bare node: the standard library and its own modules are all there is."""
    own = {path.stem for path in NODE.glob("*.py")} | {"clusterctl_bootstrap"}
    for path in sorted(NODE.rglob("*.py")):
        for name in imported_names(path.read_text()):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in own:
                yield f"{path.relative_to(CHECKOUT)}: imports {name}, which a node does not have"


def imported_names(text: str) -> list[str]:
    """Every module the source imports, anywhere, but `__future__`."""
    names = []
    for found in ast.walk(ast.parse(text)):
        if isinstance(found, ast.Import):
            names += [alias.name for alias in found.names]
        elif isinstance(found, ast.ImportFrom) and found.module != "__future__":
            names.append(found.module or ".")
    return names


def count_lines(path: Path) -> int:
    return sum(1 for line in path.read_text().splitlines() if line.strip())


def counted(kind: str) -> list[Path]:
    """What somebody wrote as a program, in Python or for a shell; data is not counted."""
    return [path for path in files(kind) if path.suffix in (".py", ".sh") or path.read_bytes().startswith(b"#!")]


def sources(kind: str) -> list[Path]:
    return [path for path in files(kind) if path.suffix == ".py"]


def files(kind: str) -> list[Path]:
    found = [path for package in PACKAGES[kind] for path in sorted((CHECKOUT / package).rglob("*"))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


if __name__ == "__main__":
    sys.exit(main())
