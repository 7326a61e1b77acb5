"""A look through an account: what one region refuses hides nothing of the others."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any  # what is written

import pytest
from botocore.exceptions import ClientError
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.look import Look
from clusterctl.cloud.resource import ResourceType
from clusterctl.cost.sighting import SeenMachine
from clusterctl.cost.sighting_file import read_seen
from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.reap.request import ReapRequest, look_and_end, reap, refuse_unseen, region_clients
from clusterctl.reap.search import GLOBAL_KINDS, NO_REGION, Search, anything, made_in_time, search
from clusterctl.reap.verdict import Asked
from clusterctl_infra.errors import CloudError, ClusterctlError, StillBills, UsageError
from clusterctl_infra.outputs import inventory_to_json
from clusterctl_infra.region_keys import KeyPair, RegionAccess

from tests.unit.cli.cloud.fake_answers import Answers, clients_of
from tests.unit.cli.cloud.fake_ec2 import NoClients, Waiting
from tests.unit.cli.reap.reap_cases import ID, NOW, thing

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory

REGIONS = ("ap-east-1", "us-west-2")


def searched(*, refused: Sequence[str]) -> Search:
    """An account with an instance in each region and a role in none; calls to `refused` are denied."""

    def looks(clients: Clients, kinds: Sequence[ResourceType]) -> Look:
        place = NO_REGION if kinds == GLOBAL_KINDS else clients.region
        if place in refused:
            raise CloudError(f"UnauthorizedOperation: {place}", code="UnauthorizedOperation")
        found = thing("role", "r-1") if place == NO_REGION else thing("instance", f"i-{place}")
        return Look(things=(found,))

    return search(NoClients, REGIONS, all_regions=False, looks=looks)


def test_a_region_that_is_forbidden_hides_nothing_of_the_others_and_is_named() -> None:
    found = searched(refused=["ap-east-1"])
    assert found.regions == ("us-west-2",)
    assert [(cluster.cluster_id, cluster.region, len(cluster.things)) for cluster in found.remains] == [
        (ID, "us-west-2", 2)
    ]
    assert not found.is_everywhere
    with pytest.raises(CloudError, match="not looked through: ap-east-1: UnauthorizedOperation"):
        refuse_unseen(found)


def test_when_roles_are_not_told_machines_are_found_all_the_same() -> None:
    found = searched(refused=[NO_REGION])
    assert [resource.kind for resource in found.remains[0].things] == ["instance", "instance"]
    assert list(found.unseen) == [NO_REGION]


def test_where_no_region_answers_the_look_fails() -> None:
    with pytest.raises(CloudError, match="UnauthorizedOperation: ap-east-1"):
        searched(refused=REGIONS)


def test_a_look_that_saw_all_is_no_failure() -> None:
    found = searched(refused=[])
    refuse_unseen(found)
    assert found.unseen == {}


NO_FSX = {("fsx", "describe_file_systems"): "AccessDeniedException"}
INSTANCE = {"InstanceId": "i-1", "InstanceType": "p5.48xlarge", "Tags": [{"Key": "clusterctl:id", "Value": ID}]}


def test_a_service_that_refuses_hides_nothing_of_the_others_in_its_region() -> None:
    clients = clients_of(
        {
            ("us-west-2", "describe_regions", "Regions"): [{"RegionName": "us-west-2"}],
            ("us-west-2", "describe_instances", "Reservations"): [{"Instances": [INSTANCE]}],
        },
        refused=NO_FSX,
    )
    found = search(lambda region: clients, ("us-west-2",), all_regions=True, looks=anything)
    assert [resource.id for resource in found.remains[0].things] == ["i-1"]
    assert (found.unseen, found.gap_texts) == ({}, ["FSx file system (AccessDeniedException) in us-west-2"])
    assert not found.is_whole
    assert not found.is_everywhere
    assert found.not_listed_in("us-west-2") == {"FSx file system"}
    with pytest.raises(
        CloudError, match=r"^AWS did not say whether it has: FSx file system \(AccessDeniedException\) in us-west-2$"
    ) as caught:
        refuse_unseen(found)
    assert (caught.value.exit_code, caught.value.hint) == (1, "aws sts get-caller-identity")


def test_credentials_that_do_not_come_are_not_waited_for() -> None:
    over = threading.Event()
    with pytest.raises(CloudError, match="getting credentials for us-west-2: no answer in 0 s"):
        made_in_time(Waiting("us-west-2", over), timeout_s=0.05)
    over.set()


def test_a_person_on_a_terminal_sees_how_far_the_look_is() -> None:
    messages: list[str] = []
    search(NoClients, REGIONS, all_regions=False, looks=lambda clients, kinds: Look(things=()), tell=messages.append)
    assert messages == ["getting credentials", "0 of 2 regions looked through", "1 of 2 regions looked through"]


def test_a_mistyped_region_of_a_rehearsal_is_no_empty_one(tmp_path: Path) -> None:
    wish = Asked(grace=timedelta(minutes=10))
    request = ReapRequest(asked=wish, region="us-wset-2", all_regions=False, rehearse=True, acts=False, as_json=False)
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO())
    with pytest.raises(UsageError, match=r"--region us-wset-2: no AWS region \(did you mean us-west-2\?\)"):
        reap(request, output, Home(path=tmp_path), {})


@pytest.mark.parametrize(("acts", "refused"), [(True, True), (False, False)])
def test_with_a_clock_that_is_off_what_is_there_is_shown_and_nothing_ended(
    tmp_path: Path, acts: bool, refused: bool
) -> None:
    rows = {("us-west-2", "describe_instances", "Reservations"): [{"Instances": [INSTANCE]}]}
    clients = clients_of(rows, sent_at="Sat, 21 Nov 2020 20:00:00 GMT")
    wish = Asked(grace=timedelta(minutes=10), clusters=frozenset({ID}))
    request = ReapRequest(asked=wish, region="us-west-2", all_regions=False, rehearse=False, acts=acts, as_json=False)
    shown = io.BytesIO()
    output = Output(stdout=shown, stderr=io.BytesIO())
    with pytest.raises(CloudError, match="so nothing was ended; set the clock") if refused else nullcontext():
        look_and_end(request, lambda region: clients, output, Home(path=tmp_path))
    assert "instance i-1" in shown.getvalue().decode()
    assert "terminate_instances" not in clients.asked


class Watched(io.BytesIO):
    """A stderr, and what was known when each line was written to it."""

    def __init__(self, look: Callable[[], Mapping[str, SeenMachine]]) -> None:
        super().__init__()
        self.look = look
        self.lines: list[tuple[bytes, Mapping[str, SeenMachine]]] = []

    def write(self, data: Any) -> int:
        self.lines.append((bytes(data), self.look()))
        return super().write(data)


def test_what_aws_said_of_the_machines_of_a_known_cluster_is_written_down_before_they_end(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    """EC2 refuses for good here, so that the end is over at once."""
    home = Home(path=tmp_path)
    file = home.inventory_file("train")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(inventory_to_json(make_inventory())))
    running = {**INSTANCE, "State": {"Name": "running"}, "LaunchTime": NOW - timedelta(hours=1)}
    rows = {("us-west-2", "describe_instances", "Reservations"): [{"Instances": [running]}]}
    clients = clients_of(rows, refused={("ec2", "terminate_instances"): "UnauthorizedOperation"})
    wish = Asked(grace=timedelta(minutes=10), clusters=frozenset({ID}))
    request = ReapRequest(asked=wish, region="us-west-2", all_regions=False, rehearse=False, acts=True, as_json=False)
    stderr = Watched(lambda: read_seen(home.observed_file(ID)))
    with pytest.raises(StillBills, match="not all could be ended"):
        look_and_end(request, lambda region: clients, Output(stdout=io.BytesIO(), stderr=stderr), home)
    (before_its_end,) = [seen for line, seen in stderr.lines if b"ending instance i-1" in line]
    assert before_its_end["i-1"].launched_at == NOW - timedelta(hours=1)
    assert b"forgets it" not in stderr.getvalue(), "it bills on"


def test_where_nothing_names_a_region_that_is_said_and_not_that_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    wish = Asked(grace=timedelta(minutes=10))
    request = ReapRequest(asked=wish, region=None, all_regions=False, rehearse=False, acts=True, as_json=False)
    with pytest.raises(UsageError, match=r"^which region\?"):
        reap(request, Output(stdout=io.BytesIO(), stderr=io.BytesIO()), Home(path=tmp_path), {})


class Forbidden(NoClients):
    """A region in which an organization forbids every call."""

    def _service(self, name: str) -> Any:
        raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "not authorized"}}, name)


@pytest.mark.parametrize("acts", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_reap_that_could_not_look_through_a_region_fails_after_it_has_shown_the_others(
    tmp_path: Path, acts: bool, as_json: bool
) -> None:
    """Else a scheduled reap would report success for ever, whatever bills in that region."""
    rows: Answers = {
        ("eu-west-1", "describe_regions", "Regions"): [{"RegionName": "eu-west-1"}, {"RegionName": "us-west-2"}],
        ("eu-west-1", "describe_instances", "Reservations"): [{"Instances": [INSTANCE]}],
    }
    here, forbidden = clients_of(rows, region="eu-west-1"), Forbidden("us-west-2")
    wish = Asked(grace=timedelta(minutes=10))
    request = ReapRequest(asked=wish, region=None, all_regions=True, rehearse=False, acts=acts, as_json=as_json)
    shown = io.BytesIO()
    output = Output(stdout=shown, stderr=io.BytesIO())
    with pytest.raises(CloudError, match=r"^not looked through: us-west-2: UnauthorizedOperation") as raised:
        look_and_end(
            request, lambda region: forbidden if region == forbidden.region else here, output, Home(path=tmp_path)
        )
    assert raised.value.exit_code == 1
    assert ID.encode() in shown.getvalue()


class Unread(io.BytesIO):
    """A stdout whose reader has gone, or whose disk is full."""

    def __init__(self, refusal: Exception) -> None:
        super().__init__()
        self.refusal = refusal

    def write(self, data: object) -> int:
        raise self.refusal


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("refusal", [BrokenPipeError(), ClusterctlError("stdout cannot be written: no space left")])
def test_what_was_to_end_is_ended_and_what_is_left_is_said_though_nobody_reads_what_is_shown(
    tmp_path: Path, refusal: Exception, as_json: bool
) -> None:
    """EC2 refuses for good here, so that the end is over at once."""
    rows = {("us-west-2", "describe_instances", "Reservations"): [{"Instances": [INSTANCE]}]}
    clients = clients_of(rows, refused={("ec2", "terminate_instances"): "UnauthorizedOperation"})
    wish = Asked(grace=timedelta(minutes=10), clusters=frozenset({ID}))
    request = ReapRequest(asked=wish, region="us-west-2", all_regions=False, rehearse=False, acts=True, as_json=as_json)
    output = Output(stdout=Unread(refusal), stderr=io.BytesIO())
    with pytest.raises(StillBills, match="not all could be ended"):
        look_and_end(request, lambda region: clients, output, Home(path=tmp_path))
    assert "terminate_instances" in clients.asked


@pytest.mark.parametrize("refusal", [BrokenPipeError(), ClusterctlError("stdout cannot be written: no space left")])
def test_that_stdout_took_nothing_is_said_in_the_end(tmp_path: Path, refusal: Exception) -> None:
    wish = Asked(grace=timedelta(minutes=10))
    request = ReapRequest(asked=wish, region="us-west-2", all_regions=False, rehearse=False, acts=True, as_json=False)
    output = Output(stdout=Unread(refusal), stderr=io.BytesIO())
    with pytest.raises(type(refusal)) as raised:
        look_and_end(request, lambda region: clients_of({}), output, Home(path=tmp_path))
    assert raised.value is refusal


def test_the_clients_of_all_regions_share_one_person_s_credentials() -> None:
    keys = KeyPair(access_key_id="REHEARSALAAAAAAAAAAA", secret_access_key="of the region")
    clients_of = region_clients(RegionAccess(endpoint_url="http://127.0.0.1:1", keys=keys))
    here, there = clients_of("us-west-2"), clients_of("eu-west-1")
    assert clients_of("us-west-2") is here
    assert isinstance(here, AwsClients)
    assert isinstance(there, AwsClients)
    assert here.sts.meta.region_name == "us-west-2"
    assert there.sts.meta.region_name == "eu-west-1"
    assert here.session is there.session
    assert here.session.get_config_variable("region") == "us-west-2", "where a person's role would be assumed"
