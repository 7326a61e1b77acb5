"""A disk without room is named with what is free, before anything is changed and after a run that found it full."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.system.disk_space import existing, full_folder, refuse_without_space, shown
from clusterctl_infra.errors import ClusterctlError


def test_a_folder_without_room_is_refused_with_what_is_free_and_what_is_needed(tmp_path: Path) -> None:
    later = tmp_path / "not made/yet"
    with pytest.raises(ClusterctlError) as refused:
        refuse_without_space(later, needed_bytes=2**60)
    assert refused.value.message.startswith(f"{later} has ")
    assert refused.value.message.endswith(
        f" free, and a change of a cluster needs {2**30}.0 GiB there: nothing was changed"
    )
    assert refused.value.hint == f"df -h {tmp_path}"
    refuse_without_space(later, needed_bytes=1)


def test_a_file_system_that_does_not_tell_its_size_is_not_taken_for_a_full_one() -> None:
    refuse_without_space(Path("/proc/self"), needed_bytes=2**60)


@pytest.mark.parametrize(
    "message",
    [
        "pulumi up failed: save: write {}/dev.json.18ea.tmp: no space left on device",
        "saving stack config: write {}/Pulumi.dev.yaml: no space left on device\nmore",
        "{}/dev.jsonl cannot be written: no space left on device",
        "OSError: [Errno 28] No space left on device: '{}/train.json'",
        "write {}/a.json: disk quota exceeded",
    ],
)
def test_the_folder_is_the_one_that_the_engine_names(tmp_path: Path, message: str) -> None:
    assert full_folder(message.format(tmp_path), log=Path("/x.jsonl"), is_silent=False) == tmp_path


def test_words_without_a_file_mean_the_log_s_disk(tmp_path: Path) -> None:
    message = "[Errno 28] No space left on device"
    assert full_folder(message, log=tmp_path / "x.jsonl", is_silent=False) == tmp_path


def test_another_failure_is_none_of_a_full_disk(tmp_path: Path) -> None:
    assert full_folder("InsufficientInstanceCapacity", log=tmp_path, is_silent=False) is None
    assert full_folder("", log=tmp_path, is_silent=True) is None, "the disk of this test has room"


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 KiB"), (12_500, "12 KiB"), (32 * 2**20, "32 MiB"), (5 * 2**28, "1.2 GiB")]
)
def test_sizes_are_told_in_the_unit_that_df_shows(size_bytes: int, text: str) -> None:
    assert shown(size_bytes) == text


def test_the_nearest_existing_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert existing(tmp_path / "file/a/b") == tmp_path
    assert existing(tmp_path) == tmp_path
