"""An older state is put back, as from a backup: all nodes come to one membership again, and status tells until then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Two process machines, ready."""
    with rehearsed(tmp_path_factory.mktemp("older"), machines="process", nodes=2) as cluster:
        cluster.up()
        yield cluster


def test_up_goes_on_above_what_nodes_have_and_a_later_replace_keeps_them_together(pair: Rehearsed) -> None:
    old = state_of(pair).read_bytes()
    pair.ok("extend", "1h")
    pair.ok("replace", "--node", "1")
    assert generations(pair) == {3}
    state_of(pair).write_bytes(old)
    up = pair.run("up", str(pair.folder))
    assert up.exit_code == 0, up.text
    told = f"{pair.name}-0: membership 3 is there, the state knows 2: an older state was put back. All nodes get 4"
    assert told in up.stderr
    assert generations(pair) == {4}
    pair.ok("replace", "--node", "0")
    assert generations(pair) == {5}
    assert set(words(pair).values()) == {None}


def test_two_memberships_of_one_number_are_named_and_up_makes_them_one(pair: Rehearsed) -> None:
    old = state_of(pair).read_bytes()
    pair.ok("extend", "1h")
    state_of(pair).write_bytes(old)
    again = pair.run("extend", "2h")
    assert again.exit_code == 4, again.text
    assert f"next: clusterctl up {pair.folder}" in again.stderr, "another extend would be refused by the nodes, too"
    assert set(words(pair).values()) == {"split"}
    assert f"{pair.name}-[0-1]: another membership under the same number" in pair.run("status").stdout
    pair.up()
    assert set(words(pair).values()) == {None}
    assert len(generations(pair)) == 1


def state_of(cluster: Rehearsed) -> Path:
    """Where the engine keeps it."""
    folder = Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    return folder / ".pulumi" / "stacks" / cluster.name / "dev.json"


def generations(cluster: Rehearsed) -> set[int]:
    """What the nodes' own programs find."""
    shown = cluster.ok("ssh", "--node", "all", "--json", "--", "cat", "/etc/clusterctl/status.json")
    return {json.loads(json.loads(line)["stdout"])["generation"] for line in shown.splitlines()}


def words(cluster: Rehearsed) -> dict[str, str | None]:
    """Node → how its membership differs from what is known here."""
    return {name: row["membership"] for name, row in cluster.nodes().items()}
