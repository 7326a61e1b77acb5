"""A state that a full disk tore is put back from the last whole copy, which is kept while a run goes on."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.state_file import KeptState, put_back, state_file
from clusterctl_infra.errors import EngineError

from tests.unit.cli.file_size_limit import room_for_files_of

STACK = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=True)
KEPT = "stacks/train/dev.json.kept"
REAP = "clusterctl reap"


def state_of(number: int) -> str:
    return json.dumps({"version": 3, "checkpoint": {"latest": {"resources": [number]}}})


class Backend:
    """A file backend, and the clock by which its state is looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0.0
        self.url = f"file://{folder}"
        self.kept = KeptState(self.url, STACK, clock=lambda: self.now)

    def file(self, name: str) -> Path:
        path = self.folder / ".pulumi" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def state(self) -> Path:
        return self.file("stacks/train/dev.json")

    def write(self, name: str, text: str, *, at: float) -> None:
        """As the engine does: under another name first."""
        fresh = self.file(f"{name}.tmp")
        fresh.write_text(text)
        os.utime(fresh, (at, at))
        os.replace(fresh, self.file(name))

    def save(self, text: str, *, at: float) -> None:
        self.write("stacks/train/dev.json", text, at=at)

    def look(self, *, at: float) -> None:
        self.now = at
        self.kept.follow()


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    return Backend(tmp_path)


def test_the_newest_whole_state_of_a_run_is_what_is_put_back(backend: Backend) -> None:
    for number in (1, 2):
        backend.save(state_of(number), at=100 + number)
        backend.look(at=number)
    backend.save("", at=103)
    backend.write("stacks/train/dev.json.bak", '{"version": 3, "checkp', at=104)
    backend.write("stacks/train/dev.json.attrs", "{}", at=104)
    backend.look(at=3)
    backend.kept.end()
    message = put_back(backend.url, STACK, reap=REAP)
    assert message == (
        "the state's file was damaged (0 bytes, as by a full disk): restored as it was at 00:01:42 UTC, from "
        "dev.json.kept"
    )
    assert backend.state.read_text() == state_of(2)
    left = {path.name for path in backend.state.parent.iterdir()}
    assert left == {"dev.json", "dev.json.bak", "dev.json.torn"}
    assert put_back(backend.url, STACK, reap=REAP) is None


def test_a_run_that_left_a_whole_state_keeps_no_other(backend: Backend) -> None:
    backend.save(state_of(1), at=101)
    backend.look(at=1)
    assert backend.file(KEPT).samefile(backend.state), "a link takes no room"
    backend.kept.end()
    assert not backend.file(KEPT).exists()


def test_the_state_is_read_once_a_second_at_most(backend: Backend) -> None:
    backend.save(state_of(1), at=101)
    backend.look(at=1)
    backend.save(state_of(2), at=102)
    backend.look(at=1.9)
    assert backend.file(KEPT).read_text() == state_of(1)
    backend.look(at=2)
    assert backend.file(KEPT).read_text() == state_of(2)


@pytest.mark.parametrize(
    "name",
    [
        KEPT,
        "stacks/train/dev.json.bak",
        "history/train/dev/dev-17.checkpoint.json",
        "backups/train/dev/dev.17.json",
    ],
)
def test_what_the_backend_itself_copied_serves_when_it_is_newer(backend: Backend, name: str) -> None:
    backend.save("{", at=200)
    for older in (KEPT, "history/train/dev/dev-16.checkpoint.json"):
        backend.write(older, state_of(1), at=101)
    backend.write(name, state_of(2), at=102)
    message = put_back(backend.url, STACK, reap=REAP)
    assert message is not None
    assert message.endswith(name.rpartition("/")[2])
    assert backend.state.read_text() == state_of(2)


def test_what_is_put_back_is_its_owners_alone(backend: Backend) -> None:
    backend.save("{", at=200)
    backend.write(KEPT, state_of(1), at=101)
    backend.file(KEPT).chmod(0o600)
    put_back(backend.url, STACK, reap=REAP)
    assert stat.S_IMODE(backend.state.stat().st_mode) == 0o600


def test_a_copy_that_cannot_be_written_leaves_the_torn_state_as_it_was(backend: Backend) -> None:
    backend.save('{"version": 3, "checkp', at=200)
    backend.write(KEPT, state_of(1), at=101)
    with room_for_files_of(8), pytest.raises(OSError, match="File too large"):
        put_back(backend.url, STACK, reap=REAP)
    assert backend.state.read_text() == '{"version": 3, "checkp'
    put_back(backend.url, STACK, reap=REAP)
    assert backend.state.read_text() == state_of(1)


def whole(backend: Backend) -> None:
    backend.save(state_of(1), at=101)
    backend.write("stacks/train/dev.json.bak", state_of(2), at=102)


def removed(backend: Backend) -> None:
    backend.write("stacks/train/dev.json.bak", state_of(2), at=102)


@pytest.mark.parametrize("arrange", [whole, removed])
def test_nothing_else_is_touched(backend: Backend, arrange: Callable[[Backend], None]) -> None:
    arrange(backend)
    before = {path: path.read_text() for path in backend.folder.rglob("*") if path.is_file()}
    assert put_back(backend.url, STACK, reap=REAP) is None
    assert {path: path.read_text() for path in backend.folder.rglob("*") if path.is_file()} == before


def test_where_no_copy_is_whole_the_tags_are_what_is_left(backend: Backend) -> None:
    backend.save("", at=101)
    backend.write("stacks/train/dev.json.bak", "", at=102)
    backend.write("stacks/train/prod.json.bak", state_of(2), at=102)
    backend.write("backups/train/prod/prod.1.json", state_of(2), at=102)
    with pytest.raises(EngineError, match=r"dev\.json is damaged, as by a full disk") as refused:
        put_back(backend.url, STACK, reap=REAP)
    assert f"rm {backend.state}" in refused.value.message
    assert refused.value.hint == REAP
    assert backend.state.exists()


def test_a_state_elsewhere_is_not_followed() -> None:
    assert state_file("s3://states", STACK) is None
    KeptState("s3://states", STACK).follow()
    assert put_back("https://api.pulumi.com", STACK, reap=REAP) is None
