"""Clusters are ended side by side, and one that cannot be ended holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.machine_resources import RESERVATION
from clusterctl.cloud.reservations import ReservationState
from clusterctl.cloud.resource import CloudResource
from clusterctl.cost.sighting_file import note_reservations, read_reserved
from clusterctl.reap.ending import Ended, WhyNotNow, end_judged
from clusterctl.reap.remains import Remains
from clusterctl.reap.search import Search
from clusterctl.reap.verdict import Verdict

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cloud.fake_ec2 import PATIENCE_S, FakeRegion, NoClients, Waiting

IDS = ("000000000000", "111111111111")


def verdicts(regions: dict[str, FakeRegion]) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(
            remains=Remains(cluster_id=id, region=id, things=tuple(region.things.values())),
            known=None,
            ends=True,
            reason="named",
        )
        for id, region in regions.items()
    )


def regions() -> dict[str, FakeRegion]:
    """A machine in each of two regions, which are named like the clusters."""
    return {id: FakeRegion(things={f"i-{id}": CloudResource(kind="instance", id=f"i-{id}")}) for id in IDS}


def ended(there: dict[str, FakeRegion], why_not_now: WhyNotNow, *, waiting: Clients | None = None) -> tuple[Ended, ...]:
    """`waiting`: the clients of the first region."""
    clients: dict[str, Clients] = {id: NoClients() for id in there}
    if waiting is not None:
        clients[IDS[0]] = waiting
    kinds = {id: region.kind("instance") for id, region in there.items()}

    def find(asked: object, cluster_id: str | None) -> Sequence[CloudResource]:
        return list(kinds[str(cluster_id)].find(clients[str(cluster_id)], cluster_id))

    def delete(asked: object, found: CloudResource) -> None:
        id = found.id.removeprefix("i-")
        kinds[id].delete(clients[id], found)

    row = replace(kinds[IDS[0]], find=find, delete=delete)
    search = Search(regions=IDS, all_regions=False, remains=())
    return end_judged(
        verdicts(there),
        search,
        lambda region: clients[region],
        why_not_now,
        tell=lambda text: None,
        observed_file=lambda verdict: None,
        making_s=PATIENCE_S if waiting is None else 0.05,
        kinds=(row,),
    )


def test_two_clusters_are_under_way_at_the_same_time() -> None:
    there, both_are_here = regions(), threading.Barrier(len(IDS), timeout=PATIENCE_S)
    first_look = {id: threading.Event() for id in IDS}

    def why_not_now(verdict: Verdict, things: Sequence[CloudResource]) -> str | None:
        if not first_look[verdict.remains.cluster_id].is_set():
            first_look[verdict.remains.cluster_id].set()
            both_are_here.wait()  # one after the other, nobody would come
        return None

    done = ended(there, why_not_now)
    assert [end.verdict.remains.cluster_id for end in done] == list(IDS)
    assert all(end.is_done for end in done)
    assert not any(region.things for region in there.values())


def test_a_cluster_that_is_somebodys_again_is_left_alone_and_the_other_ends() -> None:
    there = regions()
    first, second = ended(there, lambda verdict, things: "left alone" if verdict.remains.cluster_id == IDS[0] else None)
    assert (first.trouble, first.is_done, second.is_done) == ("left alone", False, True)
    assert [bool(region.things) for region in there.values()] == [True, False]


def test_a_cluster_whose_credentials_do_not_come_is_named_and_the_other_ends() -> None:
    there, over = regions(), threading.Event()
    first, second = ended(there, lambda verdict, things: None, waiting=Waiting(IDS[0], over))
    over.set()
    assert first.trouble is not None
    assert first.trouble.startswith(f"getting credentials for {IDS[0]}: no answer in")
    assert second.is_done
    assert [bool(region.things) for region in there.values()] == [True, False]


def test_who_is_interrupted_waits_for_no_cluster_s_ten_minutes() -> None:
    there = regions()
    there[IDS[1]].refused[f"i-{IDS[1]}"] = "DependencyViolation"  # refused for as long as anybody asks

    def why_not_now(verdict: Verdict, things: Sequence[CloudResource]) -> str | None:
        if verdict.remains.cluster_id == IDS[0]:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        ended(there, why_not_now)


def test_when_a_reservation_ended_is_written_down_though_aws_tells_of_no_reservation_afterwards(tmp_path: Path) -> None:
    observed = tmp_path / "observed.jsonl"
    made = datetime(2026, 11, 21, 10, tzinfo=UTC)
    held = ReservationState(
        reservation_id="cr-1", instance_type="p5.48xlarge", places=2, state="active", created_at=made, ends_at=None
    )
    note_reservations(observed, [held], at=made)
    region = FakeRegion(things={"cr-1": CloudResource(kind=RESERVATION, id="cr-1")})
    clients = clients_of({}, refused={("ec2", "describe_capacity_reservations"): "UnauthorizedOperation"})
    (end,) = end_judged(
        verdicts({IDS[0]: region}),
        Search(regions=IDS, all_regions=False, remains=()),
        lambda region: clients,
        lambda verdict, things: None,
        tell=lambda text: None,
        observed_file=lambda verdict: observed,
        kinds=(region.kind(RESERVATION),),
    )
    assert end.is_done
    assert read_reserved(observed)["cr-1"].ended_at is not None
