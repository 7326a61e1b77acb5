"""docs/env.md, the table, and the files that a node writes: what one says, the others have."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from clusterctl_bootstrap.environment_meaning import MEANINGS, OTHERS, TITLES
from clusterctl_bootstrap.environment_reference import environment_reference
from clusterctl_bootstrap.node.boot import boot

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, routed, with_adapter

DOCS = Path(__file__).parents[3] / "docs" / "env.md"
ROW = re.compile(r"\| `([A-Z_]+)` \| `(.*?)` \| (?:(`env`(?:, `env\.list`)?) \| )?")
FOLDER = "etc/clusterctl"


def on_page() -> dict[str, str]:
    """Variable → the files that the committed page names for it; Slurm's stand in a file of their own."""
    rows = (ROW.match(line) for line in DOCS.read_text(encoding="utf-8").splitlines())
    return {row[1]: row[3] or "`slurm.env`" for row in rows if row is not None}


def written(root: Path, name: str) -> set[str]:
    text = (root / FOLDER / name).read_text()
    if name == "env.list":
        return {line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")}
    return {word.partition("=")[0] for word in shlex.split(text, comments=True)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node on which every variable of the table has a reason to be there: a host with InfiniBand, by IPv6."""
    machine = routed(born(tmp_path, fabric="required", efa_interfaces=0, host_user="ubuntu", slot_cidr="fd00::/120"))
    with_adapter(machine, "mlx5_0", "mlx5_core", link_layer="InfiniBand")
    assert boot(machine, FakeOutside(addresses=("fd00::2",))) == 0
    return machine


def test_the_committed_page_is_the_generated_one() -> None:
    assert DOCS.read_text(encoding="utf-8") == environment_reference(), "run scripts/docs"


def test_the_page_names_what_the_files_have_and_where(root: Path) -> None:
    page = on_page()
    assert {name for name, files in page.items() if "`env`" in files} == written(root, "env")
    assert {name for name, files in page.items() if "`env.list`" in files} == written(root, "env.list")
    assert {name for name, files in page.items() if "`slurm.env`" in files} == written(root, "slurm.env")


def test_what_nccl_reads_has_a_file_of_its_own(root: Path) -> None:
    assert written(root, "nccl.env") == {
        "NCCL_DEBUG",
        "NCCL_SOCKET_IFNAME",
        "GLOO_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
        "NCCL_NET",
        "NCCL_SOCKET_FAMILY",
        "NCCL_IB_HCA",
    }


def test_the_session_of_a_command_over_ssh_reads_the_raw_list(root: Path) -> None:
    assert (root / "home/ubuntu/.ssh/environment").read_text() == (root / FOLDER / "env.list").read_text()


def test_every_sentence_is_about_a_variable_and_every_title_about_a_section() -> None:
    assert set(MEANINGS) == set(on_page())
    page = DOCS.read_text(encoding="utf-8")
    assert [title for title in TITLES.values() if f"## {title}\n\n|" not in page] == []
    assert [whose for whose in OTHERS.values() if f"| {whose} |\n" not in page] == []


def test_the_machines_own_facts_are_left_out_where_it_has_none(tmp_path: Path) -> None:
    machine = born(tmp_path)
    assert boot(machine, FakeOutside()) == 0
    assert (machine / FOLDER / "nccl.env").read_text() == "NCCL_DEBUG='WARN'\n"
