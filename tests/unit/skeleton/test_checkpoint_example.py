"""What the documentation shows of a training that saves is the example that a test runs."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_recipe_of_the_documentation_is_the_examples() -> None:
    page = (ROOT / "docs/nodes.md").read_text(encoding="utf-8")
    recipe = page.partition("```python\n")[2].partition("```")[0]
    assert recipe
    assert recipe in (ROOT / "examples/checkpoint/train.py").read_text(encoding="utf-8")
