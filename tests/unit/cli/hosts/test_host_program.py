"""Parts of the program on hosts: sshd's settings, the receipt, removed last, and names removed from /etc/hosts."""

from __future__ import annotations

import ast
import fcntl
import json
from importlib.resources import files
from pathlib import Path

import pytest
from clusterctl.hosts.host_program import MODULES, host_program
from clusterctl.on_node.host.__main__ import (
    HOSTS_BEGIN,
    HOSTS_END,
    alone,
    delete,
    delete_state,
    forget_done,
    locked,
    read,
    sshd_lines,
    without_names,
    write_if_changed,
)
from clusterctl.on_node.host.commands import Refused
from clusterctl.on_node.host.mounts import missing_folders, on_the_way, refuse_taken, remove_folders
from clusterctl_bootstrap.node import writing
from clusterctl_bootstrap.node.writing import hosts_text

from tests.unit.cli.file_size_limit import room_for_files_of

BLOCK = "# clusterctl: every node of the cluster\n10.1.0.5 lab-0\n# clusterctl: end\n"
OWN = "127.0.0.1 localhost\n10.9.9.9 storage  # ours\n"


def test_the_block_of_names_begins_and_ends_as_the_agent_writes_it() -> None:
    """The program runs on a host without the agent's modules, so it has its own copy of the two lines."""
    assert (HOSTS_BEGIN, HOSTS_END) == (writing.HOSTS_BEGIN, writing.HOSTS_END)


@pytest.mark.parametrize("text", [OWN + BLOCK, BLOCK + OWN, OWN])
def test_the_block_of_names_goes_and_the_owner_s_lines_stay(tmp_path: Path, text: str) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(text)
    hosts.chmod(0o664)
    without_names(hosts)
    assert hosts.read_text() == OWN
    assert hosts.stat().st_mode & 0o777 == 0o664
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]


def test_names_that_cannot_be_removed_leave_the_file_as_it_was_and_none_beside_it(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(OWN + BLOCK)
    with room_for_files_of(8), pytest.raises(OSError, match="File too large"):
        without_names(hosts)
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]
    assert hosts.read_text() == OWN + BLOCK


def test_lines_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"10.9.9.9 gr\xf6\xdfe\n" + BLOCK.encode())
    without_names(hosts)
    assert hosts.read_bytes() == b"10.9.9.9 gr\xf6\xdfe\n"


def test_a_file_that_is_there_as_it_should_be_is_not_written_again(tmp_path: Path) -> None:
    file = {"path": str(tmp_path / "new" / "key"), "content": "secret\n", "permissions": "0600"}
    assert write_if_changed(file)
    assert Path(file["path"]).stat().st_mode & 0o777 == 0o600
    assert not write_if_changed(file)
    assert write_if_changed({**file, "content": "other\n"})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key"]


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_receipt_that_is_none_stops_everything(tmp_path: Path, text: str) -> None:
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(Refused, match=r"host\.json"):
        read(str(tmp_path / "host.json"))
    assert read(str(tmp_path / "nothing")) == {}


REQUEST = {"user": "ada", "addresses": ["10.1.0.5", "10.1.0.6"], "environment": ["GREETING", "NODE_RANK"]}


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        (".ssh/authorized_keys .ssh/authorized_keys2", ".ssh/authorized_keys .ssh/authorized_keys2 "),
        ("/etc/ssh/keys/%u", "/etc/ssh/keys/%u "),
        ("none", ""),
    ],
)
def test_sshd_takes_the_nodes_key_for_the_login_user_from_the_nodes_alone(keys: str, kept: str) -> None:
    text = sshd_lines(f"port 22\nauthorizedkeysfile {keys}\npermituserenvironment no\n", REQUEST)
    assert text == (
        "PermitUserEnvironment GREETING,NODE_RANK\n"
        "Match User ada Address 10.1.0.5,10.1.0.6\n"
        f"    AuthorizedKeysFile {kept}/etc/ssh/clusterctl/keys-%u\n"
    )


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("EDITOR,LANG_*", "PermitUserEnvironment EDITOR,LANG_*,GREETING,NODE_RANK\n"),
        ("no", "PermitUserEnvironment GREETING,NODE_RANK\n"),
        ("yes", ""),
    ],
)
def test_variables_that_the_owner_lets_in_are_let_in_as_before(value: str, line: str) -> None:
    assert sshd_lines(f"permituserenvironment {value}\n", REQUEST).partition("Match ")[0] == line


def test_what_cannot_be_deleted_keeps_the_receipt_and_the_next_remove_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "clusterctl"
    (state / "jobs" / "a").mkdir(parents=True)
    for name in ("birth.json", "host.json", "lock", "zz"):
        (state / name).write_text(name)

    def busy(path: Path) -> None:
        if path.name == "lock":
            raise OSError(f"{path} is busy")
        delete(path)

    with pytest.raises(OSError, match="is busy"):
        delete_state(state, busy)
    assert sorted(path.name for path in state.iterdir()) == ["birth.json", "host.json", "lock", "zz"]
    delete_state(state, delete)
    assert not state.exists()


def test_a_file_that_appears_while_the_folder_goes_keeps_the_receipt(tmp_path: Path) -> None:
    state = tmp_path / "clusterctl"
    (state / "jobs").mkdir(parents=True)
    (state / "host.json").write_text("receipt")

    def racing(path: Path) -> None:
        delete(path)
        (state / "late").write_text("")

    with pytest.raises(OSError, match="not empty"):
        delete_state(state, racing)
    assert (state / "host.json").read_text() == "receipt"


def test_two_clusters_do_not_take_a_host_at_the_same_moment(tmp_path: Path) -> None:
    place = str(tmp_path / "lock")
    with alone(place, 0), pytest.raises(Refused, match="another clusterctl changes it"), alone(place, 0):
        pass
    assert not Path(place).exists()
    with alone(place, 0):
        assert Path(place).stat().st_mode & 0o777 == 0o600


def test_a_line_that_the_agent_put_aside_is_put_back_where_it_was(tmp_path: Path) -> None:
    own = "127.0.0.1 localhost\n127.0.1.1 lab-0.corp.example lab-0\n10.9.9.9 storage  # ours\n"
    hosts = tmp_path / "hosts"
    hosts.write_text(hosts_text(own, {"lab-0": "10.1.0.5", "lab-1": "10.1.0.6"}))
    assert "\n127.0.1.1" not in hosts.read_text()
    without_names(hosts)
    assert hosts.read_text() == own


def test_only_folders_that_a_mount_brings_are_taken_back_and_only_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    paths = [str(tmp_path / "mnt/lab/data"), str(tmp_path / "mnt/lab/fast")]
    missing = missing_folders(paths)
    assert missing == [str(tmp_path / "mnt/lab"), *paths]
    for path in paths:
        Path(path).mkdir(parents=True)
    assert on_the_way(missing, paths[:1]) == missing[:2]
    (tmp_path / "mnt/lab/fast/theirs").touch()
    remove_folders(missing)
    assert sorted(path.name for path in (tmp_path / "mnt").rglob("*")) == ["fast", "lab", "theirs"]
    (tmp_path / "mnt/lab/fast/theirs").unlink()
    remove_folders(missing)
    assert (tmp_path / "mnt").is_dir()
    assert list((tmp_path / "mnt").iterdir()) == []


def test_a_lock_file_that_was_deleted_after_it_was_opened_locks_nothing(tmp_path: Path) -> None:
    """Whoever waits has the file of the holder before open: with that alone two would hold the lock."""
    place = tmp_path / "lock"
    with alone(str(place), 0):
        waiting = place.open("w")
    with waiting:
        assert not locked(waiting.fileno(), str(place)), "nobody has it now, and this is no file of that name"
        fcntl.flock(waiting.fileno(), fcntl.LOCK_UN)
        with alone(str(place), 0):
            assert not locked(waiting.fileno(), str(place)), "another one holds the file that has this name now"
    with place.open("w") as fresh:
        assert locked(fresh.fileno(), str(place))


def test_what_was_changed_runs_again(tmp_path: Path) -> None:
    files = [
        {"path": f"{tmp_path}/birth.json", "content": json.dumps({"packages": ["a"]})},
        {"path": f"{tmp_path}/scripts/one.sh", "content": "1"},
        {"path": f"{tmp_path}/scripts/two.sh", "content": "2"},
    ]
    for each in files:
        write_if_changed(each)
    (tmp_path / "done").mkdir()

    def left_done(**changed: str) -> list[str]:
        for name in ("packages", "one.sh", "two.sh"):
            (tmp_path / "done" / name).touch()
        requested = [{**each, "content": changed.get(Path(each["path"]).stem, each["content"])} for each in files]
        forget_done(requested, tmp_path)
        return sorted(path.name for path in (tmp_path / "done").iterdir())

    assert left_done() == ["one.sh", "packages", "two.sh"]
    assert left_done(one="other") == ["packages", "two.sh"]
    assert left_done(birth=json.dumps({"packages": ["a"], "slot": 1})) == ["one.sh", "packages", "two.sh"]
    assert left_done(birth=json.dumps({"packages": ["a", "b"]})) == ["one.sh", "two.sh"]


def test_the_program_is_whole_in_one_argument() -> None:
    names = {path.name.removesuffix(".py") for path in files("clusterctl.on_node.host").iterdir()} - {"__pycache__"}
    assert names == {"__init__", "__main__", *MODULES}
    ast.parse(host_program())


@pytest.mark.parametrize("place", ["link", "link/deep"])
def test_nothing_is_mounted_by_a_path_with_a_symbolic_link_in_it(tmp_path: Path, place: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    message = f"{tmp_path}/{place}: by a symbolic link this is {tmp_path}/{place.replace('link', 'there')}, "
    with pytest.raises(Refused, match=message):
        refuse_taken([f"{tmp_path}/{place}"])
