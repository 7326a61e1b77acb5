"""What an engine killed while writing leaves beside its state does not stop the next one."""

from __future__ import annotations

from pathlib import Path

from clusterctl.engine.stack import Stack
from clusterctl.engine.state_file import remove_torn_files

STACK = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=True)


def write(root: Path, name: str, text: str) -> Path:
    path = root / ".pulumi" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_empty_sidecar_goes_and_the_state_stays(tmp_path: Path) -> None:
    state = write(tmp_path, "stacks/train/dev.json", "{}")
    torn = write(tmp_path, "stacks/train/dev.json.attrs", "")
    half = write(tmp_path, "stacks/train/dev.json.17a.tmp", '{"versi')
    whole = write(tmp_path, "stacks/train/dev.json.bak.attrs", '{"md5": "x"}')
    assert set(remove_torn_files(f"file://{tmp_path}", STACK)) == {torn, half}
    assert state.exists()
    assert whole.exists()


def test_a_lock_that_names_nobody_goes_and_one_that_does_stays(tmp_path: Path) -> None:
    empty = write(tmp_path, "locks/organization/train/dev/a.json", "")
    held = write(tmp_path, "locks/organization/train/dev/b.json", '{"pid": 7}')
    state = write(tmp_path, "stacks/train/dev.json", "")
    assert remove_torn_files(f"file://{tmp_path}", STACK) == (empty,)
    assert held.exists()
    assert state.exists(), "a torn state is put back, not removed"


def test_other_stacks_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "stacks/train/prod.json.attrs", "")
    write(tmp_path, "stacks/other/dev.json.attrs", "")
    assert remove_torn_files(f"file://{tmp_path}", STACK) == ()


def test_other_backends_have_no_such_files() -> None:
    assert remove_torn_files("s3://bucket", STACK) == ()
