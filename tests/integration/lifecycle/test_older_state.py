"""An older state is put back, as from a backup: `status` says so until `up` gives all nodes one membership again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Rehearsed]:
    """Two process machines, ready."""
    with rehearsed(tmp_path, machines="process", nodes=2) as cluster:
        cluster.up()
        yield cluster


def test_an_older_state_is_told_and_up_makes_the_nodes_of_one_membership_again(pair: Rehearsed) -> None:
    first = state_of(pair).read_bytes()
    pair.ok("extend", "1h")
    two_memberships_of_one_number_are_named_and_up_makes_them_one(pair, first)
    pair.ok("replace", "--node", "1")
    assert generations(pair) == {4}
    up_goes_on_above_what_nodes_have_and_a_later_replace_keeps_them_together(pair, first)


def two_memberships_of_one_number_are_named_and_up_makes_them_one(pair: Rehearsed, first: bytes) -> None:
    """The state is one behind the nodes."""
    state_of(pair).write_bytes(first)
    again = pair.run("extend", "2h")
    assert again.exit_code == 4, again.text
    assert f"next: clusterctl up {pair.folder}" in again.stderr, "another extend would be refused by the nodes, too"
    assert set(words(pair).values()) == {"split"}
    assert f"{pair.name}-[0-1]: another membership under the same number" in pair.run("status").stdout
    pair.up()
    assert set(words(pair).values()) == {None}
    assert generations(pair) == {3}


def up_goes_on_above_what_nodes_have_and_a_later_replace_keeps_them_together(pair: Rehearsed, first: bytes) -> None:
    """Since that state a machine was replaced. The stack's configuration has the 3 of the repair before."""
    state_of(pair).write_bytes(first)
    up = pair.run("up", str(pair.folder))
    assert up.exit_code == 0, up.text
    message = f"{pair.name}-0: membership 4 is there, the state knows 3: an older state was put back. All nodes get 5"
    assert message in up.stderr
    assert generations(pair) == {5}
    pair.ok("replace", "--node", "0")
    assert generations(pair) == {6}
    assert set(words(pair).values()) == {None}


def state_of(cluster: Rehearsed) -> Path:
    """Where the engine keeps it."""
    folder = Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    return folder / ".pulumi" / "stacks" / cluster.name / "dev.json"


def generations(cluster: Rehearsed) -> set[int]:
    """What the nodes' own agents say."""
    return {cluster.agent_status(node)["generation"] for node in cluster.instance_ids()}


def words(cluster: Rehearsed) -> dict[str, str | None]:
    """Node → how its membership differs from what is known here."""
    return {name: row["membership"] for name, row in cluster.nodes().items()}
