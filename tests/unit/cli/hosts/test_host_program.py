"""Parts of what runs on a host: names go from /etc/hosts, a file is written once, and only a receipt of ours counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.on_node.host.__main__ import Refused, read, without_names, written_anew

BLOCK = "# clusterctl: every node of the cluster\n10.1.0.5 lab-0\n# clusterctl: end\n"
OWN = "127.0.0.1 localhost\n10.9.9.9 storage  # ours\n"


@pytest.mark.parametrize("text", [OWN + BLOCK, BLOCK + OWN, OWN])
def test_the_block_of_names_goes_and_the_owner_s_lines_stay(tmp_path: Path, text: str) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(text)
    hosts.chmod(0o664)
    without_names(hosts)
    assert hosts.read_text() == OWN
    assert hosts.stat().st_mode & 0o777 == 0o664
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]


def test_lines_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"10.9.9.9 gr\xf6\xdfe\n" + BLOCK.encode())
    without_names(hosts)
    assert hosts.read_bytes() == b"10.9.9.9 gr\xf6\xdfe\n"


def test_a_file_that_is_there_as_it_should_be_is_not_written_again(tmp_path: Path) -> None:
    file = {"path": str(tmp_path / "new" / "key"), "content": "secret\n", "permissions": "0600"}
    assert written_anew(file)
    assert Path(file["path"]).stat().st_mode & 0o777 == 0o600
    assert not written_anew(file)
    assert written_anew({**file, "content": "other\n"})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key"]


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_receipt_that_is_none_stops_everything(tmp_path: Path, text: str) -> None:
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(Refused, match=r"host\.json"):
        read(str(tmp_path / "host.json"))
    assert read(str(tmp_path / "nothing")) == {}
