"""Who may own a home, and how open it may be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.program import run
from clusterctl_infra.errors import UsageError
from clusterctl_infra.home_folder import is_private_or_missing
from clusterctl_infra.private_home import Person, make_private_folder, private_opener, refuse_home, secure_home
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_rehearsal.region.store import Store

HOME = Path("/there/home")
ROOT, PERSON, OTHER = 0, 1000, 1001


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("person", "owner_id", "mode"),
    [
        (Person(user_id=PERSON), PERSON, 0o755),
        (Person(user_id=PERSON), ROOT, 0o755),
        (Person(user_id=ROOT), ROOT, 0o700),
        (Person(user_id=ROOT, calling_id=PERSON), PERSON, 0o700),
    ],
)
def test_a_home_is_the_person_s_own_or_root_s_or_with_sudo_the_caller_s(
    person: Person, owner_id: int, mode: int
) -> None:
    refuse_home(HOME, owner_id=owner_id, mode=mode, person=person, hint="")


@pytest.mark.parametrize(
    ("person", "owner_id"),
    [
        (Person(user_id=PERSON), OTHER),
        (Person(user_id=ROOT), OTHER),
        (Person(user_id=ROOT, calling_id=PERSON), OTHER),
        (Person(user_id=PERSON, calling_id=OTHER), OTHER),
    ],
)
def test_a_home_of_another_user_is_refused_with_that_user(person: Person, owner_id: int) -> None:
    with pytest.raises(UsageError, match=f"/there/home is owned by user {OTHER}") as refused:
        refuse_home(HOME, owner_id=owner_id, mode=0o700, person=person, hint="unset CLUSTERCTL_HOME")
    assert refused.value.hint == "unset CLUSTERCTL_HOME"


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702, 0o1777])
def test_a_home_that_others_can_write_is_refused_with_its_mode_and_what_closes_it(mode: int) -> None:
    with pytest.raises(UsageError, match=rf"can be written by other users \(mode {mode:04o}\)") as refused:
        refuse_home(HOME, owner_id=PERSON, mode=mode, person=Person(user_id=PERSON), hint="")
    assert refused.value.hint == "chmod go-rwx /there/home"


@pytest.mark.parametrize(
    ("mode", "is_private"), [(0o700, True), (0o500, True), (0o710, False), (0o704, False), (0o770, False)]
)
def test_a_start_looks_closer_at_a_home_that_others_have_any_right_to(
    mode: int, is_private: bool, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    assert is_private_or_missing({"CLUSTERCTL_HOME": str(home)}, os.geteuid()) is is_private


def test_a_start_looks_closer_at_a_home_of_another_user(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    assert not is_private_or_missing({"CLUSTERCTL_HOME": str(home)}, os.geteuid() + 1)


def test_a_home_that_is_not_there_has_nothing_to_close(tmp_path: Path) -> None:
    assert is_private_or_missing({"CLUSTERCTL_HOME": str(tmp_path / "home")}, os.geteuid())


def test_a_home_that_others_can_read_is_closed_and_said_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    environ = {"CLUSTERCTL_HOME": str(home)}
    assert secure_home(environ) == f"{home} could be read by other users (mode 0755); it is now for its owner alone"
    assert _mode(home) == 0o700
    assert secure_home(environ) is None


@pytest.mark.parametrize(("mode", "hint"), [(0o755, None), (0o777, "export CLUSTERCTL_HOME={home}/clusterctl")])
def test_a_folder_of_other_things_keeps_its_mode(mode: int, hint: str | None, tmp_path: Path) -> None:
    home = tmp_path / "srv"
    (home / "www").mkdir(parents=True)
    home.chmod(mode)
    environ = {"CLUSTERCTL_HOME": str(home)}
    if hint is None:
        assert secure_home(environ) is None
    else:
        with pytest.raises(UsageError, match="use a folder in it") as refused:
            secure_home(environ)
        assert refused.value.hint == hint.format(home=home)
    assert _mode(home) == mode


def test_a_used_home_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "inventory").mkdir(parents=True)
    (home / "notes").touch()
    home.chmod(0o755)
    assert secure_home({"CLUSTERCTL_HOME": str(home)}) is not None
    assert _mode(home) == 0o700


@pytest.mark.parametrize("what", ["nothing", "a file"])
def test_what_is_no_folder_is_left_to_whoever_uses_it(what: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    if what == "a file":
        home.touch()
    assert secure_home({"CLUSTERCTL_HOME": str(home)}) is None


def test_the_command_line_closes_a_home_before_its_verb_uses_it(
    own_home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own_home.mkdir()
    own_home.chmod(0o750)
    run(["nodes"], Output.of_process())
    assert "could be read by other users (mode 0750)" in capfd.readouterr().err
    assert _mode(own_home) == 0o700


def test_the_command_line_refuses_a_home_that_others_can_write(
    own_home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own_home.mkdir()
    own_home.chmod(0o777)
    assert run(["nodes"], Output.of_process()) == 2
    assert f"next: chmod go-rwx {own_home}" in capfd.readouterr().err


@pytest.mark.usefixtures("open_umask")
def test_whoever_creates_the_home_creates_it_for_its_owner_alone(tmp_path: Path) -> None:
    LocalHome(root=tmp_path / "provider").append_ledger("0123456789ab", {})
    Store(tmp_path / "region" / "rehearsal" / "store")
    make_private_folder(Home(path=tmp_path / "cli").runs_dir)
    with open(tmp_path / "cli" / "file", "w", opener=private_opener):
        pass
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {path.name for path in made} >= {"provider", "region", "rehearsal", "store", "cli", "runs"}
    assert {_mode(path) for path in made} == {0o700}
    assert {_mode(path) for path in tmp_path.rglob("*") if path.is_file()} == {0o600}
