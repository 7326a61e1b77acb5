"""Rules for the tree that no linter has: prints each breach. Also reports, as no rule, small files that have only one
importer, and the rehearsal's share of the lines."""

from __future__ import annotations

import ast
import collections
import functools
import graphlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lazy_imports

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "product": ("cli/clusterctl", "infra/clusterctl_infra", "bootstrap/clusterctl_bootstrap"),
    "rehearsal": ("rehearsal/clusterctl_rehearsal",),
}
NODE = CHECKOUT / "bootstrap" / "clusterctl_bootstrap" / "node"
MOST_LINES = 400
MOST_FUNCTION_LINES = 40
"""Without its docstring."""
CHANGEABLE = {
    *("bytearray", "dict", "list", "set", "Dict", "List", "Set", "defaultdict", "deque", "Counter", "OrderedDict"),
    *("DefaultDict", "Deque", "MutableMapping", "MutableSequence", "MutableSet"),
}
SMALL_LINES = 40
RIDDLES = ("Itself", "The same")
"""Beginnings of docstrings that mean nothing without the code around them."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, *FUNCTIONS)
VAGUE_NAMES = {"utils", "helpers", "common", "misc", "manager", "base"}
PLACES_OF_NAMES = (*(folder for kind in PACKAGES.values() for folder in kind), "bench", "examples", "scripts", "tests")
RIDDLE_NAMES = {"Desk", "Errand", "Tries", "_House", "_meant", "foreseen", "no_way", "truth", "who_tells"}
"""Names that this code once had, and that nobody understood without the code around them."""
RIDDLE_VARIABLES = {*RIDDLE_NAMES, "one", "said", "told", "untold"}
"""`one` of what, `said` by whom? A function may be called so."""
RIDDLE_MODULES = {"desk", "errand", "no_way", "one", "truth"}
REHEARSAL_SHARE = 0.60  # the stand-in should stay small beside the product


def main() -> int:
    rows = lazy_imports.table()
    texts = {str(path.relative_to(CHECKOUT)): path.read_text() for kind in PACKAGES for path in sources(kind)}
    breaches = [
        *file_breaches(),
        *code_breaches(),
        *name_breaches(),
        *cycle_breaches(rows),
        *node_breaches(),
        *fake_breaches(),
        *lazy_imports.lazy_breaches(texts, rows),
    ]
    for breach in breaches:
        print(breach)
    lines = {kind: sum(count_lines(path) for path in counted(kind)) for kind in PACKAGES}
    share = lines["rehearsal"] / max(lines["product"], 1)
    verdict = "" if share <= REHEARSAL_SHARE else f", aim: at most {REHEARSAL_SHARE:.0%}"
    small = list(small_files(rows))
    print(f"report: {len(small)} files of less than {SMALL_LINES} lines have one importer: {', '.join(small)}")
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
            if path.name == "__init__.py" and names_imported_at_load(text):
                yield f"{shown}: imports {', '.join(names_imported_at_load(text))}; package files import nothing"


def code_breaches() -> Iterator[str]:
    """Functions that do not fit on a screen, frozen classes whose fields can change, docstrings that are riddles."""
    for kind in PACKAGES:
        for path in sources(kind):
            shown = path.relative_to(CHECKOUT)
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, WITH_DOCSTRINGS):
                    continue
                place = f"{shown}:{getattr(node, 'lineno', 1)}"
                if isinstance(node, FUNCTIONS) and (lines := function_lines(node)) > MOST_FUNCTION_LINES:
                    yield f"{place}: {node.name} has {lines} lines, split it (at most {MOST_FUNCTION_LINES})"
                if isinstance(node, ast.ClassDef):
                    yield from (
                        f"{place}: {node.name} is frozen, and {field} is not" for field in changeable_fields(node)
                    )
                for line, text in docstrings(node):
                    if text.startswith(RIDDLES):
                        problem = f"the docstring says {text.partition('.')[0]!r}; say what it gives"
                        yield f"{shown}:{line}: {problem}"


def docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring directly in a module, class or function, also those of fields."""
    if isinstance(node, WITH_DOCSTRINGS):
        for statement in node.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.lineno, str(statement.value.value)


def name_breaches() -> Iterator[str]:
    """Names that are riddles, wherever Python is written; only files with such a word are parsed."""
    word = re.compile(rf"\b({'|'.join(sorted(RIDDLE_VARIABLES))})\b")
    for path in (path for place in PLACES_OF_NAMES for path in sorted((CHECKOUT / place).rglob("*.py"))):
        shown = path.relative_to(CHECKOUT)
        if riddles := RIDDLE_MODULES.intersection(shown.with_suffix("").parts):
            yield f"{shown}: {riddles.pop()} says nothing, name it after what it holds"
        text = path.read_text()
        if word.search(text):
            yield from (f"{shown}:{line}: what is {name!r}? Say what it holds" for line, name in riddle_names(text))


def riddle_names(text: str) -> list[tuple[int, str]]:
    """The line and name of each variable, parameter, function and class of the source whose name is a riddle."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = {node.id} & RIDDLE_VARIABLES
        elif isinstance(node, ast.arg):
            names = {node.arg} & RIDDLE_VARIABLES
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names = {node.name} & RIDDLE_VARIABLES if node.name else set()
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = {node.name} & RIDDLE_NAMES
        else:
            continue
        found += [(node.lineno, name) for name in names]
    return sorted(found)


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines of a function, without its docstring."""
    first = function.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) and first.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def changeable_fields(node: ast.ClassDef) -> Iterator[str]:
    """The fields of a frozen dataclass or a named tuple whose values anybody can change."""
    if is_value(node):
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and CHANGEABLE.intersection(kinds_of(field.annotation)):
                yield ast.unparse(field.target)


def is_value(node: ast.ClassDef) -> bool:
    """Whether the class is a frozen dataclass or a named tuple."""
    is_frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    return is_frozen or any(ast.unparse(base).rpartition(".")[2] == "NamedTuple" for base in node.bases)


def kinds_of(annotation: ast.expr) -> Iterator[str]:
    """The types that a field may hold, by name alone: `typing.Dict[str, int] | None` is a Dict or None."""
    if isinstance(annotation, ast.BinOp):
        yield from (*kinds_of(annotation.left), *kinds_of(annotation.right))
        return
    name = ast.unparse(annotation).partition("[")[0].rpartition(".")[2]
    if isinstance(annotation, ast.Subscript) and name in ("Optional", "Union", "Annotated"):
        inner = annotation.slice
        yield from (kind for part in getattr(inner, "elts", [inner]) for kind in kinds_of(part))
    else:
        yield name


def cycle_breaches(rows: list[lazy_imports.LazyImport]) -> Iterator[str]:
    """Files that import each other, directly or through others, also when one of them is loaded only on use."""
    for kind in PACKAGES:
        for folder in PACKAGES[kind]:
            root = (CHECKOUT / folder).parent
            files = {module_name(path, root): path for path in sources(kind) if path.is_relative_to(root)}
            if cycle := cycle_in(import_graph(files, rows)):
                yield f"files import each other: {' → '.join(cycle)}"


def import_graph(
    files: dict[str, Path], rows: list[lazy_imports.LazyImport], checkout: Path = CHECKOUT
) -> dict[str, set[str]]:
    """Which of the other files each file imports, at load or on use; imports of an `__init__.py` do not count."""
    modules = {name: path for name, path in files.items() if path.name != "__init__.py"}
    return {
        name: imported_files(path, files) | lazy_imports.loaded_on_use(str(path.relative_to(checkout)), rows, modules)
        for name, path in files.items()
    }


def small_files(rows: list[lazy_imports.LazyImport]) -> Iterator[str]:
    """Small files that may belong into the only one that imports them: a report, as size alone is no reason."""
    for folder in PACKAGES["product"]:
        root = (CHECKOUT / folder).parent
        files = {module_name(path, root): path for path in sources("product") if path.is_relative_to(root)}
        importers = collections.Counter(name for found in import_graph(files, rows).values() for name in found)
        for name, path in files.items():
            if importers[name] == 1 and len(path.read_text().splitlines()) < SMALL_LINES:
                yield name


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """One of the graph's cycles, its first member again at the end; empty where it has none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def module_name(path: Path, root: Path) -> str:
    """`clusterctl.ssh.target`; a package's is the package's own name."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imported_files(path: Path, files: dict[str, Path]) -> set[str]:
    """The modules among `files` that a file imports anywhere in it."""
    return {name for name in modules_named_in(path.read_text()) if name in files and files[name].name != "__init__.py"}


@functools.cache
def modules_named_in(text: str) -> frozenset[str]:
    """The modules that a source imports anywhere, and what may be modules: the names that it takes from them."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def fake_breaches() -> Iterator[str]:
    """Fakes in the tests that inherit from a class of the product that does something, or hold an object of one.

    What such a fake does not override is real: the constructor, and each method that is added later.
    """
    for path in sorted((CHECKOUT / "tests").rglob("*.py")):
        shown, text = path.relative_to(CHECKOUT), path.read_text()
        for line, name, base in product_bases(text, defined_class):
            yield f"{shown}:{line}: {name} inherits from {base}, which does something: implement a Protocol"
        if path.name.startswith("fake_"):
            for line, name in product_objects(text, defined_class):
                yield f"{shown}:{line}: a fake makes a {name}, which does something: implement a Protocol"


def product_bases(text: str, defined: Callable[[str, str], ast.ClassDef | None]) -> Iterator[tuple[int, str, str]]:
    """Line, name and base of each class whose base comes from a module of ours and does something.

    `defined`: returns the class, from a module and a name.
    """
    tree = ast.parse(text)
    imported = imported_here(tree)
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for base in (ast.unparse(base).partition("[")[0] for base in node.bases):
            found = class_behind(base, imported, defined)
            if found is not None and does_something(found):
                yield node.lineno, node.name, base


def product_objects(text: str, defined: Callable[[str, str], ast.ClassDef | None]) -> Iterator[tuple[int, str]]:
    """Line and class of each object that the source makes of a class of ours that does something.

    Values may be made, which are frozen dataclasses and named tuples, and errors may be raised. A class that is only
    named as a type is not looked at.
    """
    tree = ast.parse(text)
    imported = imported_here(tree)
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node not in raised):
        called = ast.unparse(node.func)
        for name in (called, called.rpartition(".")[0]):
            found = class_behind(name, imported, defined)
            if found is not None and does_something(found) and not is_value(found):
                yield node.lineno, name


def class_behind(
    name: str,
    imported: tuple[dict[str, tuple[str, str]], dict[str, str]],
    defined: Callable[[str, str], ast.ClassDef | None],
) -> ast.ClassDef | None:
    """The class that a file means by `Name` or `module.Name`; `imported`: what `imported_here` found in the file."""
    classes, modules = imported
    module, _, last = name.rpartition(".")
    place = (modules.get(module, module), last) if module else classes.get(name)
    return None if place is None else defined(*place)


def imported_here(tree: ast.Module) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Name → (module, original name) of what a file imports from modules; name → module of what may be a module."""
    classes: dict[str, tuple[str, str]] = {}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            classes |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return classes, modules


def defined_class(module: str, name: str) -> ast.ClassDef | None:
    """The class of that name in a module of the product or the rehearsal; None if there is no such class."""
    for folder in (folder for kind in PACKAGES.values() for folder in kind):
        path = (CHECKOUT / folder).parent / f"{module.replace('.', '/')}.py"
        if path.is_file():
            classes = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
            return next((node for node in classes if node.name == name), None)
    return None


def does_something(found: ast.ClassDef) -> bool:
    """Whether a class has a method with more in it than a docstring, `pass` or `raise NotImplementedError`."""
    if any(ast.unparse(base).partition("[")[0] in {"Protocol", "Exception", "Enum"} for base in found.bases):
        return False
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    return any(not _is_empty(statement) for method in methods for statement in method.body)


def _is_empty(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Pass) or ast.unparse(statement) == "raise NotImplementedError"


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


def names_imported_at_load(text: str) -> list[str]:
    """What the source imports when it is loaded, outside of functions.

    `clusterctl.nodes` is loaded by a function in its package's file: every command loads that file, and must not pay
    for what the function loads.
    """
    at_load = [statement for statement in ast.parse(text).body if not isinstance(statement, ast.FunctionDef)]
    return imported_names(ast.unparse(ast.Module(body=at_load, type_ignores=[])))


def count_lines(path: Path) -> int:
    return sum(1 for line in path.read_text().splitlines() if line.strip())


def counted(kind: str) -> list[Path]:
    """The files that are programs, in Python or for a shell; data is not counted."""
    return [path for path in files(kind) if path.suffix in (".py", ".sh") or path.read_bytes().startswith(b"#!")]


def sources(kind: str) -> list[Path]:
    return [path for path in files(kind) if path.suffix == ".py"]


def files(kind: str) -> list[Path]:
    found = [path for package in PACKAGES[kind] for path in sorted((CHECKOUT / package).rglob("*"))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


if __name__ == "__main__":
    sys.exit(main())
