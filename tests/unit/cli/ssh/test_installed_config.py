"""`ssh-config --install`: the file that `~/.ssh/config` includes, and the line that does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.home import Home
from clusterctl.ssh.installed_config import include_line, install, refresh
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import inventory_to_json

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory

OWN = "Host *\n    User me\n"


def keep(home: Home, make_inventory: MakeInventory, *clusters: str, size: int = 2) -> None:
    home.inventory_dir.mkdir(parents=True, exist_ok=True)
    for cluster in clusters:
        inventory = make_inventory(cluster=cluster, size=size)
        home.inventory_file(cluster).write_text(json.dumps(inventory_to_json(inventory)))


def test_the_persons_own_lines_stay_behind_the_one_that_includes_ours(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    home, config = Home(path=tmp_path / "home"), tmp_path / ".ssh" / "config"
    keep(home, make_inventory, "train")
    config.parent.mkdir()
    config.write_text(OWN)
    config.chmod(0o640)
    assert install(home, config.parent)
    assert config.read_text() == f"{include_line(home)}\n\n{OWN}"
    assert config.stat().st_mode & 0o777 == 0o640
    assert not install(home, config.parent)
    assert config.read_text().count("Include") == 1


def test_without_a_configuration_there_is_a_private_one(tmp_path: Path) -> None:
    home, config = Home(path=tmp_path / "home"), tmp_path / ".ssh" / "config"
    assert install(home, config.parent)
    assert config.read_text() == f"{include_line(home)}\n"
    assert config.stat().st_mode & 0o777 == 0o600
    assert (home.path / "ssh_config").stat().st_mode & 0o777 == 0o600


def test_a_change_writes_what_is_there_now_and_a_cluster_that_is_gone_goes(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    home = Home(path=tmp_path / "home")
    keep(home, make_inventory, "train", "old")
    install(home, tmp_path / ".ssh")
    assert "# old," in (home.path / "ssh_config").read_text()
    keep(home, make_inventory, "train", size=3)
    home.inventory_file("old").unlink()
    refresh(home)
    text = (home.path / "ssh_config").read_text()
    assert "Host train-2\n" in text
    assert "# old," not in text


def test_where_nothing_was_installed_a_change_writes_nothing(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path / "home")
    keep(home, make_inventory, "train")
    refresh(home)
    assert not (home.path / "ssh_config").exists()


def test_a_cluster_on_aws_comes_first_and_one_that_cannot_be_read_is_said(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    home = Home(path=tmp_path / "home")
    keep(home, make_inventory, "a@rehearsal", "train")
    home.inventory_file("broken").write_text("{")
    install(home, tmp_path / ".ssh")
    text = (home.path / "ssh_config").read_text()
    assert "# broken: its inventory cannot be read" in text
    assert text.index("# train,") < text.index("# a@rehearsal,")


def test_dotfiles_stay_linked(tmp_path: Path) -> None:
    home, real = Home(path=tmp_path / "home"), tmp_path / "dotfiles" / "ssh_config"
    real.parent.mkdir()
    real.write_text(OWN)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").symlink_to(real)
    install(home, tmp_path / ".ssh")
    assert (tmp_path / ".ssh" / "config").is_symlink()
    assert real.read_text().startswith("Include ")


def test_a_configuration_that_is_no_text_is_left_alone_with_the_line_to_write(tmp_path: Path) -> None:
    home, config = Home(path=tmp_path / "home"), tmp_path / ".ssh" / "config"
    config.parent.mkdir()
    config.write_bytes(b"# \xff\n")
    with pytest.raises(ClusterctlError, match="write this as its first line: Include"):
        install(home, config.parent)
    assert config.read_bytes() == b"# \xff\n"


def test_a_cluster_that_ssh_cannot_be_told_of_fails_no_change(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path / "home")
    keep(home, make_inventory, "train")
    install(home, tmp_path / ".ssh")
    before = (home.path / "ssh_config").read_text()
    (home.keys_dir / "train" / "known_hosts").write_bytes(b"\xff")
    refresh(home)
    assert (home.path / "ssh_config").read_text() == before
