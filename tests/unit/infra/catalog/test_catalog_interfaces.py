"""The interfaces of every type in the catalog, by AWS's limits and by the table of its EFA guide."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import load_catalog
from hypothesis import given
from hypothesis import strategies as st

CATALOG = load_catalog()
EVERY_TYPE = list(CATALOG.types.values())
layouts = st.tuples(st.sampled_from(EVERY_TYPE), st.integers(1, 40), st.integers(1, 5), st.booleans(), st.booleans())


def invented(row: InstanceType, cards: int, per_card: int, first_has_efa: bool) -> InstanceType:
    efa = cards if first_has_efa else cards - 1
    return replace(row, network_cards=cards, max_interfaces_per_card=per_card, max_efa_interfaces=efa)


@given(layouts)
def test_a_layout_keeps_the_limits_of_aws(layout: tuple[InstanceType, int, int, bool, bool]) -> None:
    row, cards, per_card, first_has_efa, fabric = layout
    node = invented(row, cards, per_card, first_has_efa)
    interfaces = node.interfaces(fabric=fabric)
    places = [(card, device) for card, device, _ in interfaces]
    assert len(set(places)) == len(places)
    assert places.count((0, 0)) == 1
    assert places[0] == (0, 0)
    assert max(Counter(card for card, _ in places).values()) <= per_card
    assert {card for card, _ in places} <= set(range(cards))
    efa_count = sum(kind != "interface" for _, _, kind in interfaces)
    assert efa_count == (node.max_efa_interfaces if fabric else 0)
    assert [kind for _, _, kind in interfaces[1:]] == ["efa-only"] * (len(interfaces) - 1)


@pytest.mark.parametrize("row", EVERY_TYPE, ids=lambda row: row.name)
def test_every_type_uses_all_the_efa_it_has(row: InstanceType) -> None:
    assert sum(kind != "interface" for _, _, kind in row.interfaces()) == row.max_efa_interfaces


def test_a_type_with_one_card_and_one_efa_has_one_interface_for_both_and_two_in_the_first_layout() -> None:
    single = [row.name for row in CATALOG.types.values() if row.interfaces() == ((0, 0, "efa"),)]
    assert {"g5.8xlarge", "g6e.8xlarge", "c5n.18xlarge"} <= set(single)
    assert not {"g5.xlarge", "g6e.24xlarge", "p5.48xlarge"} & set(single)
    assert CATALOG.types["g5.8xlarge"].interfaces(layout=1) == ((0, 0, "interface"), (0, 1, "efa-only"))
    assert CATALOG.types["g5.8xlarge"].interfaces(fabric=False) == ((0, 0, "interface"),)
    assert CATALOG.types["p5.48xlarge"].interfaces(layout=1) == CATALOG.types["p5.48xlarge"].interfaces()


@pytest.mark.parametrize(
    ("name", "count", "second", "last"),
    [
        ("p5.48xlarge", 33, (0, 1, "efa-only"), (31, 1, "efa-only")),
        ("p5en.48xlarge", 17, (0, 1, "efa-only"), (15, 1, "efa-only")),
        ("p4d.24xlarge", 5, (0, 1, "efa-only"), (3, 1, "efa-only")),
        ("p6-b200.48xlarge", 9, (0, 1, "efa-only"), (7, 1, "efa-only")),
        ("p6-b300.48xlarge", 17, (1, 1, "efa-only"), (16, 1, "efa-only")),
    ],
)
def test_the_layout_of_a_type_is_the_one_of_parallelcluster(
    name: str, count: int, second: tuple[int, int, str], last: tuple[int, int, str]
) -> None:
    interfaces = CATALOG.types[name].interfaces()
    assert (len(interfaces), interfaces[1], interfaces[-1]) == (count, second, last)


def test_without_fabric_a_node_has_one_plain_interface() -> None:
    assert CATALOG.types["p5.48xlarge"].interfaces(fabric=False) == ((0, 0, "interface"),)


def test_a_type_without_efa_has_one_plain_interface() -> None:
    assert CATALOG.types["t3.micro"].interfaces() == ((0, 0, "interface"),)
