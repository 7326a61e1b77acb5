"""What broken downloads leave here."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from clusterctl.copying.partial import KeptParts


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_came_of_a_broken_download_is_named_and_what_has_nothing_in_it_removed(
    tmp_path: Path, error: type[BaseException]
) -> None:
    kept = KeptParts()
    whole, half, empty = tmp_path / "whole", tmp_path / "half", tmp_path / "empty"
    with kept.gathering(str(whole)):
        pass
    for path, size_bytes in ((half, 1_500_000), (empty, 0)):
        with contextlib.suppress(error), kept.gathering(str(path)):
            path.write_bytes(bytes(size_bytes))
            raise error
    assert kept.settle() == [f"1.5 MB are kept in {half}: run the same command again to resume"]
    assert list(tmp_path.iterdir()) == [half]


def test_a_download_that_runs_when_the_command_is_ended_is_named_too(tmp_path: Path) -> None:
    """Its thread ends with the process, in the middle of whatever it does."""
    kept = KeptParts()
    half = tmp_path / "half"
    with kept.gathering(str(half)):
        half.write_bytes(bytes(100_000))
        assert kept.settle() == [f"0.1 MB are kept in {half}: run the same command again to resume"]


def test_a_part_that_cannot_be_looked_at_hides_nothing_that_is_to_be_said(tmp_path: Path) -> None:
    kept = KeptParts()
    (tmp_path / "file").touch()
    with kept.gathering(str(tmp_path / "file" / "below")):
        assert kept.settle() == []
