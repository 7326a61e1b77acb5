"""docs/cli.md: every verb with its help, and the exit codes."""

from __future__ import annotations

from pathlib import Path

from cli_reference import cli_reference
from clusterctl.verbs import VERBS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def test_the_page_has_every_verb_with_an_example_and_no_click_marks() -> None:
    page = cli_reference()
    for verb in VERBS:
        assert f"\n## {verb}\n" in page
    assert "\b" not in page
    assert "    clusterctl ssh train-2 nvidia-smi\n" in page
    assert "| `--node SET` |" in page


def test_each_exit_code_is_one_row_of_a_whole_table() -> None:
    table = cli_reference().partition("|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert [row.split("|")[1].strip() for row in table] == ["0", "1", "2", "3", "4", "70", "130", "255"]


def test_the_page_in_docs_is_the_one_that_the_commands_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == cli_reference(), "scripts/docs writes it anew"
