"""Every verb of the program on nodes has its function, whose module is in the table of modules loaded on use."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from clusterctl.on_node.job import __main__ as program

TABLE = Path(__file__).parents[4] / "scripts/lazy_imports.toml"
VERBS = {**program.ANSWERS, **program.SILENT, **program.OWN_CODE}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_its_function(verb: str) -> None:
    assert callable(program.function_of(verb))


def test_no_verb_is_of_two_kinds_and_those_that_start_the_program_again_are_verbs() -> None:
    assert len(VERBS) == len(program.ANSWERS) + len(program.SILENT) + len(program.OWN_CODE)
    assert {*program.STARTING} <= {*program.ANSWERS, *program.SILENT}


def test_the_table_of_modules_loaded_on_use_names_those_of_all_verbs() -> None:
    rows = tomllib.loads(TABLE.read_text())["import"]
    (row,) = [row for row in rows if row["file"] == "cli/clusterctl/on_node/job/__main__.py"]
    assert row["modules"] == sorted({f"clusterctl.on_node.job.{module}" for module, _ in VERBS.values()})
