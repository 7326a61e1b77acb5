"""The clusters of examples/clusters: plan takes them, and what each is made of changes by no accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.lifecycle.new_stack import PROGRAM

from tests.unit.infra.components.example_clusters import (
    EXAMPLES,
    HOSTS,
    NAMES,
    ROOT,
    config_of,
    golden_file,
    listed,
    recorded,
)

PAGE = (ROOT / "docs" / "example-clusters.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_made_of_what_is_written_down(name: str) -> None:
    """Written anew by `python -m tests.unit.infra.components.write_golden`."""
    assert listed(recorded(name)) == golden_file(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_stack_folder_of_its_name_with_the_program_that_init_writes(name: str) -> None:
    folder = EXAMPLES / name
    assert config_of(name).name == name
    assert f"name: {name}\n" in (folder / "Pulumi.yaml").read_text(encoding="utf-8")
    assert (folder / "__main__.py").read_text(encoding="utf-8") == PROGRAM


def test_the_page_has_a_section_for_each_example_and_for_nothing_else() -> None:
    headings = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
    linked = {part.partition("/")[0] for part in PAGE.split("../examples/clusters/")[1:]}
    assert linked == {*NAMES, HOSTS} == {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()}
    assert len(headings) == len(linked)


def test_no_written_down_list_is_of_an_example_that_is_gone() -> None:
    assert {path.stem for path in Path(golden_file("x")).parent.iterdir()} == {*NAMES, HOSTS}
