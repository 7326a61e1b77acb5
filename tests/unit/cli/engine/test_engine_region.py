"""What the rehearsal's command line says when it fails becomes our sentence and our hint."""

from __future__ import annotations

import pytest
from clusterctl.engine.region import sentence_and_hint


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("clusterctl rehearse: no room left\n  next: df -h\n", ("no room left", "df -h")),
        ("building\nclusterctl rehearse: no network", ("no network", None)),
        ("", ("", None)),
    ],
)
def test_the_last_sentence_and_the_command_are_taken(said: str, expected: tuple[str, str | None]) -> None:
    assert sentence_and_hint(said) == expected
