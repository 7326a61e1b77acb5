"""What a node takes from a push, what it refuses, and what it is afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clusterctl_bootstrap.birth import birth_json
from clusterctl_bootstrap.node.__main__ import main
from clusterctl_bootstrap.node.apply import apply
from clusterctl_bootstrap.node.facts import FactsError, present
from clusterctl_bootstrap.node.later import attend

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import PUSHED, born, plan, pushed, status

SSH_NAMES = "etc/ssh/ssh_config.d/clusterctl-ranks.conf"
WITH_RANK = "Host train-{}.nodes.clusterctl.svc.cluster.local\nHostKeyAlias train-{}\n"


def contents(root: Path) -> dict[str, bytes]:
    """Every file but the log and the lock."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name not in ("clusterctl.log", "lock"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return born(tmp_path)


@pytest.fixture
def member(root: Path) -> Path:
    """A node that has generation 3."""
    assert apply(root, pushed(), FakeOutside())["ok"]
    return root


def test_a_push_is_what_the_node_is_from_then_on(root: Path) -> None:
    answer = apply(root, pushed(), FakeOutside())
    assert answer == {"ok": True, "generation": 3}
    node = json.loads((root / "etc/clusterctl/node.json").read_text())
    assert (node["generation"], node["nodes"], node["deadline"]) == (3, 6, PUSHED["deadline"])
    assert "NNODES='6'\n" in (root / "etc/clusterctl/env").read_text()
    assert "NNODES=6\n" in (root / "home/ubuntu/.ssh/environment").read_text()
    assert status(root)["generation"] == 3


def test_who_may_log_in_is_pushed_too(root: Path) -> None:
    outside = FakeOutside()
    apply(root, pushed(), outside)
    keys = root / "home/ubuntu/.ssh/authorized_keys"
    assert keys.read_text() == "ssh-ed25519 AAAA you@laptop\n"
    assert keys.stat().st_mode & 0o777 == 0o600
    assert outside.owned["authorized_keys"] == (1000, 1001)


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_lock_nobody_out(member: Path, keys: object) -> None:
    before = (member / "home/ubuntu/.ssh/authorized_keys").read_text()
    assert apply(member, pushed(generation=4, authorized_keys=keys), FakeOutside())["ok"]
    assert (member / "home/ubuntu/.ssh/authorized_keys").read_text() == before


def test_the_deadline_is_kept_for_the_next_boot_with_the_cluster_it_is_of(member: Path) -> None:
    assert (member / "var/lib/clusterctl/deadline").read_text() == "3f9c0a51b7de 3 1796191200\n"


def test_the_same_push_again_is_taken_and_changes_nothing(member: Path) -> None:
    before = contents(member)
    assert apply(member, pushed(), FakeOutside()) == {"ok": True, "generation": 3}
    assert contents(member) == before


def test_pushed_ranks_order_the_environment_and_the_hostfile(root: Path) -> None:
    assert apply(root, pushed(ranks=[0, 3, 1, 4, 2, 5]), FakeOutside())["ok"]
    assert "NODE_RANK='1'\n" in (root / "etc/clusterctl/env").read_text()
    assert json.loads((root / "etc/clusterctl/node.json").read_text())["rank"] == 1
    names = (root / "etc/clusterctl/hostfile").read_text().split()[::2]
    assert names == ["train-0", "train-2", "train-4", "train-1", "train-3", "train-5"]
    assert "10.0.8.2 train-2\n" in (root / "etc/hosts").read_text(), "name and address belong to the slot"


def test_ranks_that_are_pushed_no_more_are_the_slots_again(root: Path) -> None:
    assert apply(root, pushed(ranks=[0, 3, 1, 4, 2, 5]), FakeOutside())["ok"]
    assert apply(root, pushed(generation=4), FakeOutside())["ok"]
    assert "NODE_RANK='2'\n" in (root / "etc/clusterctl/env").read_text()


def test_ssh_expects_under_a_name_with_a_rank_the_key_of_the_slot_that_has_the_rank(root: Path) -> None:
    """A host certificate has the slot's names alone, and /etc/hosts gives the name to whoever has the rank."""
    settings = root / SSH_NAMES
    assert apply(root, pushed(ranks=[0, 2, 1, 3, 4, 5]), FakeOutside())["ok"]
    assert "10.0.8.2 train-1.nodes.clusterctl.svc.cluster.local\n" in (root / "etc/hosts").read_text()
    assert settings.read_text() == WITH_RANK.format(1, 2) + WITH_RANK.format(2, 1)
    assert apply(root, pushed(generation=4, ranks=[0, 1, 2, 3, 5, 4]), FakeOutside())["ok"]
    assert settings.read_text().split()[1::4] == [f"train-{rank}.nodes.clusterctl.svc.cluster.local" for rank in (4, 5)]
    assert apply(root, pushed(generation=5), FakeOutside())["ok"]
    assert not settings.exists()


def test_a_host_which_has_no_certificates_keeps_its_settings_of_ssh(tmp_path: Path) -> None:
    root = born(tmp_path, host_user="ubuntu")
    assert apply(root, pushed(ranks=[0, 2, 1, 3, 4, 5]), FakeOutside())["ok"]
    attend(root, FakeOutside())
    assert not (root / "etc/ssh").exists()


class CutOff(FakeOutside):
    """Ends the push when it is about to arm the deadline (`run`), or to give the login user its files (`own`)."""

    def __init__(self, *, at: str) -> None:
        super().__init__()
        self.at = at

    def run(self, argv: list[str], timeout_s: float = 30) -> tuple[int, str]:
        if self.at == "run":
            raise KeyboardInterrupt
        return super().run(argv, timeout_s)

    def own(self, path: Path, user_id: int, group_id: int) -> None:
        if self.at == "own":
            raise KeyboardInterrupt
        super().own(path, user_id, group_id)


@pytest.mark.parametrize("at", ["run", "own"])
@pytest.mark.parametrize(
    ("ranks", "rank_1", "expected"),
    [
        ([0, 1, 2, 3, 5, 4], 1, WITH_RANK.format(4, 5) + WITH_RANK.format(5, 4)),
        ([0, 3, 1, 2, 4, 5], 2, WITH_RANK.format(1, 2) + WITH_RANK.format(2, 3) + WITH_RANK.format(3, 1)),
        (None, 1, ""),
    ],
)
def test_after_a_push_that_was_cut_off_a_boot_has_ssh_and_etc_hosts_go_by_the_same_ranks(
    tmp_path: Path, at: str, ranks: list[int] | None, rank_1: int, expected: str
) -> None:
    root = born(tmp_path, with_systemd=True)
    assert apply(root, pushed(ranks=[0, 2, 1, 3, 4, 5]), FakeOutside())["ok"]
    with pytest.raises(KeyboardInterrupt):
        apply(root, pushed(generation=4, ranks=ranks), CutOff(at=at))
    assert main(["boot"], root, FakeOutside()) == 0
    assert f"10.0.8.{rank_1} train-1.nodes.clusterctl.svc.cluster.local\n" in (root / "etc/hosts").read_text()
    settings = root / SSH_NAMES
    assert (settings.read_text() if settings.exists() else "") == expected


def test_a_boot_without_a_push_keeps_the_keys_that_ssh_expects(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True)
    assert apply(root, pushed(ranks=[0, 2, 1, 3, 4, 5]), FakeOutside())["ok"]
    assert main(["boot"], root, FakeOutside()) == 0
    assert (root / SSH_NAMES).read_text() == WITH_RANK.format(1, 2) + WITH_RANK.format(2, 1)


def test_in_an_image_made_of_another_clusters_node_ssh_forgets_that_clusters_ranks_at_boot(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True)
    assert apply(root, pushed(ranks=[0, 2, 1, 3, 4, 5]), FakeOutside())["ok"]
    (root / "var/lib/clusterctl/birth.json").write_text(birth_json(plan(cluster_id="000000000000"), agent="new"))
    assert main(["boot"], root, FakeOutside()) == 0
    assert "10.0.8.1 train-1.nodes.clusterctl.svc.cluster.local\n" in (root / "etc/hosts").read_text()
    assert not (root / SSH_NAMES).exists()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another cluster": ({"generation": 9, "cluster_id": "000000000000"}, "cluster_id: 000000000000 was offered"),
    "a generation that is over": ({"generation": 2}, "generation: 2 was offered, 3 is here"),
    "a run that is over": ({"generation": 9, "run": 0}, "run: 0 was offered, 1 is here"),
    "the same generation with other content": ({"nodes": 8}, "generation: 3 is here already"),
    "another version": ({"generation": 9, "version": 2}, "version 1"),
    "no generation": ({"generation": None}, "generation: None is not int"),
    "a truth as a number": ({"generation": True}, "generation: True is not int"),
    "a number as text": ({"generation": 9, "nodes": "6"}, "nodes: '6' is not int"),
    "no nodes": ({"generation": 9, "nodes": 0}, "nodes: 0"),
    "a cluster without this slot": ({"generation": 9, "nodes": 2}, "nodes: 2 was offered, this is slot 2"),
    "more nodes than addresses": ({"generation": 9, "slot_cidr": "10.0.8.0/30"}, "slot_cidr"),
    "addresses that are none": ({"generation": 9, "slot_cidr": "ten"}, "slot_cidr"),
    "no deadline": ({"generation": 9, "deadline": None}, "deadline"),
    "a deadline that is no time": ({"generation": 9, "deadline": "tomorrow"}, "deadline"),
    "a deadline without a zone": ({"generation": 9, "deadline": "2026-12-02T06:00:00"}, "deadline"),
    "a name that no shell takes": ({"generation": 9, "env": {"A-B": ""}}, "env: 'A-B'"),
    "a value that is no text": ({"generation": 9, "env": {"A": 1}}, "env: 'A'"),
    "ranks for other nodes": ({"generation": 9, "ranks": [0, 1]}, "ranks: [0, 1] is not one rank for each slot"),
    "a rank twice": ({"generation": 9, "ranks": [0, 1, 1, 3, 4, 5]}, "ranks"),
    "a truth as a rank": ({"generation": 9, "ranks": [0, True, 2, 3, 4, 5]}, "ranks"),
    "another slot as rank 0": ({"generation": 9, "ranks": [1, 0, 2, 3, 4, 5]}, "0 for slot 0"),
    "ranks that are no list": ({"generation": 9, "ranks": "012345"}, "ranks"),
    "a key of two lines": ({"generation": 9, "authorized_keys": ["a\nb"]}, "authorized_keys"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_changes_nothing(member: Path, changes: dict[str, Any], reason: str) -> None:
    before = contents(member)
    answer = apply(member, pushed(**changes), FakeOutside())
    assert answer["ok"] is False
    assert reason in answer["error"]
    assert contents(member) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"text"'])
def test_what_is_no_membership_is_refused(root: Path, text: str) -> None:
    before = contents(root)
    assert apply(root, text, FakeOutside())["ok"] is False
    assert contents(root) == before


def test_a_membership_left_in_the_image_by_another_cluster_counts_for_nothing(root: Path) -> None:
    state = root / "var/lib/clusterctl"
    (state / "cluster.json").write_text(pushed(cluster_id="000000000000", generation=9, nodes=64))
    assert present(root)["nodes"] == 4
    assert apply(root, pushed(generation=1), FakeOutside())["ok"]
    assert present(root)["nodes"] == 6


@pytest.mark.parametrize("text", ['{"generation', "[]", "{}"])
def test_an_unreadable_membership_is_healed_by_the_next_push(root: Path, text: str) -> None:
    (root / "var/lib/clusterctl/cluster.json").write_text(text)
    with pytest.raises(FactsError, match=r"cluster\.json"):
        present(root)
    assert apply(root, pushed(), FakeOutside())["ok"]
    assert present(root)["generation"] == 3


def test_where_systemd_runs_the_deadline_is_armed_anew(tmp_path: Path) -> None:
    root, outside = born(tmp_path, with_systemd=True), FakeOutside()
    assert apply(root, pushed(), outside)["ok"]
    assert outside.commands[0] == ["/bin/sh", str(root / "run/clusterctl/guard")]


def test_a_deadline_that_could_not_be_armed_is_told(tmp_path: Path) -> None:
    root, outside = born(tmp_path, with_systemd=True), FakeOutside()
    outside.codes[str(root / "run/clusterctl/guard")] = 1
    answer = apply(root, pushed(), outside)
    assert answer["ok"] is False
    assert "not armed" in answer["error"]
    outside.codes.clear()
    assert apply(root, pushed(), outside)["ok"], "the same push again goes on from there"
