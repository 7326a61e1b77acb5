"""One file on its way to its place, on this computer's own disk."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from clusterctl.copying.files import Content, CopyFailed, Files, Source
from clusterctl.copying.local_files import LocalFiles, made_as_own
from clusterctl.copying.one_copy import WrongContent, bring, download, target_path, there_already
from clusterctl.copying.partial import KeptParts, partial_name
from clusterctl.copying.place import Download, Upload
from clusterctl.copying.progress import Progress
from clusterctl_infra.outputs import Inventory

TEXT = b"weights"
OTHER = hashlib.sha256(b"another").hexdigest()
CONTENT = Content(size_bytes=len(TEXT), sha256=hashlib.sha256(TEXT).hexdigest(), mode=0o750)


class Giver:
    """Writes the rest of the file, and notes each offset; `instead` replaces the first write."""

    def __init__(self, instead: Callable[[Path], object] | None = None) -> None:
        self.offsets: list[int] = []
        self._instead = instead

    def __call__(self, partial: str, offset: int, moved: object) -> None:
        self.offsets.append(offset)
        instead, self._instead = self._instead, None
        if instead is not None:
            instead(Path(partial))
            return
        before = Path(partial).read_bytes() if offset else b""
        Path(partial).write_bytes(before[:offset] + TEXT[offset:])


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The target, which still has other content."""
    path = tmp_path / "w.bin"
    path.write_bytes(b"old")
    path.chmod(0o600)
    return path


def partial_of(target: Path, digest: str = CONTENT.sha256) -> Path:
    return Path(partial_name(str(target), digest))


def brought(target: Path, give: Giver) -> None:
    bring(str(target), CONTENT, LocalFiles(), give, Progress(1))


def test_the_target_has_the_content_and_the_permissions_of_its_source(target: Path) -> None:
    brought(target, Giver())
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (TEXT, 0o750)
    assert list(target.parent.iterdir()) == [target]


def test_the_same_content_gets_the_permissions_of_its_source_too(target: Path) -> None:
    target.write_bytes(TEXT)
    assert there_already(LocalFiles(), str(target), CONTENT) == (
        f"{target} was here already; its permissions are 750 now"
    )
    assert target.stat().st_mode & 0o777 == 0o750
    assert there_already(LocalFiles(), str(target), CONTENT) == f"{target} was here already"


def linked(partial: Path, victim: Path) -> None:
    partial.symlink_to(victim)


def linked_hard(partial: Path, victim: Path) -> None:
    partial.hardlink_to(victim)


def a_pipe(partial: Path, victim: Path) -> None:
    os.mkfifo(partial)


@pytest.mark.parametrize("plant", [linked, linked_hard, a_pipe])
def test_what_somebody_else_put_in_the_partial_files_place_is_not_written_through(
    target: Path, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "authorized_keys"
    victim.write_bytes(b"")
    victim.chmod(0o600)
    plant(partial_of(target), victim)
    with pytest.raises(CopyFailed, match=r"\.w\.bin\.clusterctl-[0-9a-f]{16} is in the way"):
        brought(target, Giver())
    with pytest.raises((CopyFailed, OSError)), open(partial_of(target), "r+b", opener=made_as_own):
        pass
    assert (victim.read_bytes(), victim.stat().st_mode & 0o777) == (b"", 0o600)
    assert target.read_bytes() == b"old"


def test_a_partial_file_is_made_for_its_owner_alone_and_gone_on_with(target: Path) -> None:
    for text in (b"we", b"weig"):
        with open(partial_of(target), "r+b", opener=made_as_own) as file:
            file.write(text)
    assert partial_of(target).read_bytes() == b"weig"
    assert partial_of(target).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("beginning", "offsets"), [(b"", [0]), (b"weig", [4]), (b"wrong", [5, 0]), (TEXT, [7])])
def test_a_broken_copy_goes_on_where_it_was_unless_that_was_another(
    target: Path, beginning: bytes, offsets: list[int]
) -> None:
    partial_of(target).write_bytes(beginning)
    give = Giver()
    brought(target, give)
    assert (give.offsets, target.read_bytes()) == (offsets, TEXT)


def test_what_is_longer_than_the_file_is_no_beginning_of_it(target: Path) -> None:
    partial_of(target).write_bytes(b"something longer")
    give = Giver()
    brought(target, give)
    assert (give.offsets, target.read_bytes()) == ([0], TEXT)


def test_what_nobody_need_go_on_with_is_removed(target: Path) -> None:
    """The file has come another way since."""
    target.write_bytes(TEXT)
    partial_of(target).write_bytes(TEXT[:4])
    assert there_already(LocalFiles(), str(target), CONTENT) is not None
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("text", [b"old", TEXT])
def test_what_copies_of_what_the_file_once_was_have_left_is_removed(target: Path, text: bytes) -> None:
    """Else each interrupted copy of a file that then changes would fill the disk for ever."""
    target.write_bytes(text)
    partial_of(target, OTHER).write_bytes(b"half a f")
    mine = target.with_name(".w.bin.clusterctl-notes")
    mine.write_bytes(b"a person's")
    there_already(LocalFiles(), str(target), CONTENT)
    assert sorted(target.parent.iterdir()) == sorted([target, mine])


def test_a_copy_whose_place_another_has_taken_says_so(target: Path) -> None:
    def another_begins(partial: Path) -> None:
        partial.write_bytes(TEXT)
        content = Content(size_bytes=7, sha256=OTHER, mode=0o644)
        assert there_already(LocalFiles(), str(target), content) is None

    with pytest.raises(CopyFailed, match="another copy to the same place began meanwhile"):
        brought(target, Giver(another_begins))
    assert target.read_bytes() == b"old"


def test_what_another_command_has_put_in_place_meanwhile_is_there(target: Path) -> None:
    brought(target, Giver(lambda _: target.write_bytes(TEXT)))
    assert target.read_bytes() == TEXT


def test_wrong_content_replaces_nothing_and_is_no_beginning_of_the_next_try(target: Path) -> None:
    with pytest.raises(WrongContent, match="another checksum"):
        brought(target, Giver(lambda partial: partial.write_bytes(b"wrong..")))
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_a_disk_that_is_full_does_not_stay_full_of_half_a_file(target: Path) -> None:
    def fills_it(partial: Path) -> None:
        partial.write_bytes(b"weig")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        brought(target, Giver(fills_it))
    assert list(target.parent.iterdir()) == [target]


class NodeOfABigFile(Source):
    """A node with a file that does not fit on this computer."""

    def content(self, path: str) -> Content:
        return CONTENT

    def resume_read(self, path: str, size_bytes: int, sink: str, offset: int, moved: object) -> None:
        Path(sink).write_bytes(b"weig")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_here_is_not_told_of_the_nodes_file(
    target: Path, make_inventory: Callable[..., Inventory]
) -> None:
    wanted = Download(node=make_inventory().nodes[0], remote="/data/w.bin", local=target, is_into_folder=False)
    with pytest.raises(CopyFailed) as caught:
        download(wanted, NodeOfABigFile(), Progress(1), KeptParts())
    assert str(caught.value) == f"{target} cannot be written here: no space left on device"
    assert target.read_bytes() == b"old"


class SmallDisk(Files):
    """A computer that has room for 12 MB; `gathered`: the size of each partial file."""

    where = "here"

    def __init__(self, gathered: Mapping[str, int] | None = None) -> None:
        self.gathered = dict(gathered or {})

    def free_bytes(self, path: str) -> int:
        return 12_000_000

    def size_bytes(self, path: str) -> int | None:
        return self.gathered.get(path)

    def gathered_bytes(self, path: str) -> int:
        return self.gathered.get(path, 0)

    def digest(self, path: str, size_bytes: int) -> str:
        return "of something else"

    def remove(self, path: str) -> None:
        self.gathered.pop(path, None)

    def is_folder(self, path: str) -> bool:
        return False

    def followed(self, path: str) -> str:
        return path

    def inside(self, folder: str, name: str) -> str:
        return f"{folder}/{name}"

    def beginning_with(self, prefix: str) -> Sequence[str]:
        return [path for path in self.gathered if path.startswith(prefix)]

    def give_mode(self, path: str, mode: int) -> bool:
        return False

    def put_in_place(self, partial: str, target: str, mode: int) -> None:
        raise AssertionError(f"{target} was replaced")


def test_what_has_no_room_is_refused_before_it_travels() -> None:
    offsets: list[int] = []
    content = Content(size_bytes=90_000_000, sha256=OTHER, mode=0o644)
    with pytest.raises(CopyFailed, match="12 MB are free here, and 90 MB are needed"):
        bring("w.bin", content, SmallDisk(), lambda partial, offset, moved: offsets.append(offset), Progress(1))
    disk = SmallDisk({partial_name("w.bin", OTHER): 80_000_000})

    def give(partial: str, offset: int, moved: object) -> None:
        offsets.append(offset)
        disk.gathered[partial] = 90_000_000

    with pytest.raises(WrongContent):  # 10 MB are left to bring, and this giver brings something else
        bring("w.bin", content, disk, give, Progress(1))
    assert offsets == [80_000_000, 0]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(
    target: Path, make_inventory: Callable[..., Inventory], is_there: bool
) -> None:
    """As cp and scp do: `latest.pt` is a link that a person wants to keep."""
    link = target.parent / "links" / "latest.bin"
    link.parent.mkdir()
    link.symlink_to("../w.bin")
    if not is_there:
        target.unlink()
    upload = Upload(source=target, node=make_inventory().nodes[0], remote=str(link), is_into_folder=False)
    assert Path(target_path(upload, LocalFiles())) == target


@pytest.mark.parametrize("kind", ["folder in a folder", "pipe", "device"])
def test_what_is_no_file_is_not_replaced(target: Path, make_inventory: Callable[..., Inventory], kind: str) -> None:
    remote = {"folder in a folder": target.parent, "pipe": target.parent / "pipe", "device": Path("/dev/null")}[kind]
    if kind == "pipe":
        os.mkfifo(remote)
    if kind == "folder in a folder":
        target.unlink()
        target.mkdir()
    upload = Upload(source=target, node=make_inventory().nodes[0], remote=str(remote), is_into_folder=False)
    with pytest.raises(CopyFailed, match="is here already and is not a regular file"):
        target_path(upload, LocalFiles())


def test_a_folder_that_is_missing_is_named(target: Path, make_inventory: Callable[..., Inventory]) -> None:
    remote = f"{target.parent}/nodir/x"
    upload = Upload(source=target, node=make_inventory().nodes[0], remote=remote, is_into_folder=False)
    with pytest.raises(CopyFailed) as caught:
        target_path(upload, LocalFiles())
    assert str(caught.value) == f"{remote}: there is no folder {target.parent}/nodir here"
