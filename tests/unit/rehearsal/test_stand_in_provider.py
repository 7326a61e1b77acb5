"""The plugin as the engine sees it; the region behind it is a fake that remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import grpc
import pytest
from clusterctl_infra.provider.grpc_skeleton import EngineLog
from clusterctl_infra.provider.property_values import UNKNOWN, from_struct, to_struct
from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.plugin.errors import provider_error
from clusterctl_rehearsal.plugin.provider import RehearsalProvider
from clusterctl_rehearsal.plugin.stack_settings import StackContext
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.client import RegionClient
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.table import TYPES
from pulumi.runtime.proto import provider_pb2

FULL = AwsError("InsufficientInstanceCapacity", "We do not have it.", status=500)


class Aborted(Exception):
    """The call ended with this text."""


class Context:
    """Raises what gRPC would send."""

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise Aborted(details)


class FakeRegion:
    """Answers from a table; an exception in it is raised once."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(
        self, verb: str, asked: dict[str, Any], progress: Callable[[str], None] = lambda message: None
    ) -> dict[str, Any]:
        self.asked.append((verb, asked))
        answer = self.answers.get(verb, {})
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


PAUSES: list[float] = []
CONTEXT = cast(grpc.ServicerContext, Context())


def _urn(token: str) -> str:
    return f"urn:pulumi:dev::train::clusterctl:infra:Cluster${token}::train-thing"


def _provider(tmp_path: Path, fake: FakeRegion, **configuration: str) -> RehearsalProvider:
    stack = StackContext(home=RehearsalHome(root=tmp_path), folder=tmp_path, nonce="n1", default_region=None)
    client = cast(RegionClient, fake)
    provider = RehearsalProvider(log=EngineLog(None), client=client, context=stack, pause=PAUSES.append)
    variables = {f"aws:config:{key}": value for key, value in configuration.items()}
    provider.Configure(provider_pb2.ConfigureRequest(variables=variables), CONTEXT)
    return provider


@pytest.fixture
def region() -> FakeRegion:
    return FakeRegion()


@pytest.fixture
def provider(tmp_path: Path, region: FakeRegion) -> RehearsalProvider:
    return _provider(tmp_path, region, region="us-west-2")


def test_configuring_leaves_the_proof_and_registers_the_settings(tmp_path: Path, region: FakeRegion) -> None:
    (tmp_path / "rehearsal.yaml").write_text("machines: none\n")
    _provider(tmp_path, region, region="us-west-2")
    assert (tmp_path / "proof/n1").exists()
    assert region.asked == [("settings", {"settings": {"machines": "none"}})]


def test_no_region_is_refused_as_the_provider_does(tmp_path: Path, region: FakeRegion) -> None:
    with pytest.raises(Aborted, match="missing region"):
        _provider(tmp_path, region)


def test_a_name_is_made_up_once_and_defaults_are_filled_in(provider: RehearsalProvider) -> None:
    request = provider_pb2.CheckRequest(urn=_urn(PLACEMENT_GROUP), news=to_struct({"strategy": "cluster"}))
    first = from_struct(provider.Check(request, CONTEXT).inputs)
    assert first["name"].startswith("train-thing-")
    assert first["region"] == "us-west-2"
    request = provider_pb2.CheckRequest(
        urn=_urn(PLACEMENT_GROUP), news=to_struct({"strategy": "cluster"}), olds=to_struct(first)
    )
    assert from_struct(provider.Check(request, CONTEXT).inputs) == first


def test_an_unknown_type_is_refused_before_anything_is_asked(provider: RehearsalProvider, region: FakeRegion) -> None:
    with pytest.raises(Aborted, match=r"the stand-in does not know aws:rds\.Instance yet"):
        provider.Check(provider_pb2.CheckRequest(urn=_urn("aws:rds/instance:Instance")), CONTEXT)
    assert [verb for verb, _ in region.asked] == ["settings"]


def test_a_preview_asks_nothing(provider: RehearsalProvider, region: FakeRegion) -> None:
    request = provider_pb2.CreateRequest(urn=_urn(network.VPC), properties=to_struct({"cidrBlock": "x"}), preview=True)
    assert from_struct(provider.Create(request, CONTEXT).properties) == {"cidrBlock": "x"}
    assert len(region.asked) == 1


def test_a_create_gives_the_regions_id_and_outputs(provider: RehearsalProvider, region: FakeRegion) -> None:
    region.answers["create"] = {"id": "vpc-1", "outputs": {"arn": "arn:x"}}
    request = provider_pb2.CreateRequest(urn=_urn(network.VPC), properties=to_struct({"cidrBlock": "10.0.0.0/16"}))
    made = provider.Create(request, CONTEXT)
    assert (made.id, from_struct(made.properties)) == ("vpc-1", {"arn": "arn:x", "id": "vpc-1"})
    verb, asked = region.asked[-1]
    assert (verb, asked["type"], asked["region"], asked["machines"]) == ("create", network.VPC, "us-west-2", "auto")


def test_a_refusal_reads_as_the_providers(provider: RehearsalProvider, region: FakeRegion) -> None:
    region.answers["create"] = FULL
    with pytest.raises(Aborted) as caught:
        provider.Create(provider_pb2.CreateRequest(urn=_urn(network.INSTANCE)), CONTEXT)
    text = str(caught.value)
    assert text.startswith("1 error occurred:\n\t* creating EC2 Instance: operation error EC2: RunInstances, https ")
    assert "StatusCode: 500, RequestID: " in text
    assert "api error InsufficientInstanceCapacity: We do not have it." in text


def test_too_many_requests_are_asked_again(provider: RehearsalProvider, region: FakeRegion) -> None:
    PAUSES.clear()
    limit = AwsError("RequestLimitExceeded", "Request limit exceeded.", status=503)
    region.answers["create"] = [limit, limit, {"id": "vpc-1", "outputs": {}}]
    assert provider.Create(provider_pb2.CreateRequest(urn=_urn(network.VPC)), CONTEXT).id == "vpc-1"
    assert len(PAUSES) == 2


def test_machines_that_cannot_be_made_are_said_in_their_own_words(
    provider: RehearsalProvider, region: FakeRegion
) -> None:
    region.answers["create"] = StandInRefusal("booted machines need root")
    with pytest.raises(Aborted, match=r"^booted machines need root$"):
        provider.Create(provider_pb2.CreateRequest(urn=_urn(network.INSTANCE)), CONTEXT)


def test_a_changed_template_has_an_unknown_version_in_a_preview(provider: RehearsalProvider) -> None:
    old = {"name": "one", "userData": "b25l"}
    request = provider_pb2.UpdateRequest(
        urn=_urn(LAUNCH_TEMPLATE),
        id="lt-1",
        olds=to_struct({**old, "latestVersion": 1}),
        old_inputs=to_struct(old),
        news=to_struct({**old, "userData": "dHdv"}),
        preview=True,
    )
    assert from_struct(provider.Update(request, CONTEXT).properties)["latestVersion"] == UNKNOWN


def test_new_tags_of_a_template_keep_its_version_in_a_preview(provider: RehearsalProvider) -> None:
    request = provider_pb2.UpdateRequest(
        urn=_urn(LAUNCH_TEMPLATE),
        id="lt-1",
        olds=to_struct({"name": "one", "latestVersion": 1}),
        old_inputs=to_struct({"name": "one"}),
        news=to_struct({"name": "one", "tags": {"a": "1"}}),
        preview=True,
    )
    assert from_struct(provider.Update(request, CONTEXT).properties)["latestVersion"] == 1


def test_what_is_gone_reads_as_no_id(provider: RehearsalProvider, region: FakeRegion) -> None:
    region.answers["read"] = {"outputs": None}
    assert provider.Read(provider_pb2.ReadRequest(urn=_urn(network.INSTANCE), id="i-1"), CONTEXT).id == ""


def test_what_drifted_is_seen_after_a_refresh_and_what_did_not_is_not(
    provider: RehearsalProvider, region: FakeRegion
) -> None:
    given = {"vpcId": "vpc-1", "tags": {"a": "1"}, "region": "us-west-2", "__defaults": []}
    drifted = {"vpcId": "vpc-1", "tags": {"a": "2"}, "region": "us-west-2"}
    left = {"tags": {"a": "1"}, "region": "us-west-2"}
    for now, changed in (({**given}, []), (drifted, ["tags"]), (left, ["vpcId"])):
        region.answers["read"] = {"outputs": {**now, "id": "igw-1"}, "inputs": now}
        asked = provider_pb2.ReadRequest(
            urn=_urn(network.INTERNET_GATEWAY), id="igw-1", inputs=to_struct(given), properties=to_struct(given)
        )
        read = provider.Read(asked, CONTEXT)
        found = provider.Diff(
            provider_pb2.DiffRequest(
                urn=_urn(network.INTERNET_GATEWAY), id="igw-1", old_inputs=read.inputs, news=to_struct(given)
            ),
            CONTEXT,
        )
        assert list(found.diffs) == changed


def test_deleting_what_is_gone_is_no_error(provider: RehearsalProvider, region: FakeRegion) -> None:
    region.answers["delete"] = AwsError("InvalidInstanceID.NotFound", "gone")
    provider.Delete(provider_pb2.DeleteRequest(urn=_urn(network.INSTANCE), id="i-1"), CONTEXT)
    region.answers["delete"] = AwsError("DependencyViolation", "in use")
    with pytest.raises(Aborted, match=r"deleting EC2 Instance: .*TerminateInstances.*DependencyViolation: in use"):
        provider.Delete(provider_pb2.DeleteRequest(urn=_urn(network.INSTANCE), id="i-1"), CONTEXT)


def test_a_replacement_is_said_with_the_top_level_input(provider: RehearsalProvider) -> None:
    old = {"launchTemplate": {"id": "lt-1", "version": "1"}}
    request = provider_pb2.DiffRequest(
        urn=_urn(network.INSTANCE),
        id="i-1",
        old_inputs=to_struct(old),
        news=to_struct({"launchTemplate": {"id": "lt-1", "version": "2"}}),
    )
    found = provider.Diff(request, CONTEXT)
    assert (list(found.diffs), list(found.replaces)) == (["launchTemplate"], ["launchTemplate"])
    request.news.CopyFrom(to_struct(old))
    assert provider.Diff(request, CONTEXT).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_an_invoke_is_answered_by_the_region(provider: RehearsalProvider, region: FakeRegion) -> None:
    region.answers["look-up"] = {"outputs": {"accountId": "000000000000"}}
    request = provider_pb2.InvokeRequest(tok="aws:index/getCallerIdentity:getCallerIdentity")
    answer = getattr(provider.Invoke(request, CONTEXT), "return")
    assert from_struct(answer) == {"accountId": "000000000000"}


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.kind)
def test_every_type_has_its_words_for_errors(row: Any) -> None:
    text = provider_error("creating", row, row.create or "Create", FULL)
    assert f"creating {row.label}: operation error {row.service}: " in text
