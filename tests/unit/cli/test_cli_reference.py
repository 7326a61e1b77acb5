from __future__ import annotations

from clusterctl.reference import cli_reference
from clusterctl.verbs import VERBS


def test_the_page_has_every_verb_with_an_example_and_no_click_marks() -> None:
    page = cli_reference()
    for verb in VERBS:
        assert f"\n## {verb}\n" in page
    assert "\b" not in page
    assert "    clusterctl ssh --node 2 nvidia-smi\n" in page
    assert "| `--node SET` |" in page
