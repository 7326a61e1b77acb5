"""The engine's calls, answered without an engine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, cast  # property values

import grpc
import pytest
from clusterctl_infra.names import IDENTITY_TYPE
from clusterctl_infra.provider.grpc_skeleton import EngineLog
from clusterctl_infra.provider.identity_resource import IdentityResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.property_values import Secret, from_struct, to_struct
from clusterctl_infra.provider.server import ClusterctlPlugin
from clusterctl_infra.version import VERSION
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from tests.unit.infra.provider.provider_inputs import IDENTITY

URN = "urn:pulumi:dev::project::clusterctl:infra:Cluster$clusterctl:index:Identity::train-identity"


class Aborted(Exception):
    """The call ended with an error."""


class CallContext:
    """In place of gRPC's context: raises the error that ended the call."""

    def abort(self, code: grpc.StatusCode, message: str) -> NoReturn:
        raise Aborted(message)


def a_context() -> grpc.ServicerContext:
    return cast(grpc.ServicerContext, CallContext())


@pytest.fixture
def plugin(own_home: Path) -> ClusterctlPlugin:
    """The plugin with identities only."""
    kind = IdentityResource(home=LocalHome(root=own_home), environ={}, now=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    return ClusterctlPlugin(log=EngineLog(None), kinds={IDENTITY_TYPE: kind})


def test_a_resource_goes_from_check_to_delete(plugin: ClusterctlPlugin) -> None:
    news = to_struct(IDENTITY)
    checked = plugin.Check(provider_pb2.CheckRequest(urn=URN, news=news), a_context())
    assert list(checked.failures) == []
    made = plugin.Create(provider_pb2.CreateRequest(urn=URN, properties=checked.inputs), a_context())
    assert isinstance(from_struct(made.properties)["seed"], Secret)
    request = provider_pb2.DiffRequest(urn=URN, id=made.id, olds=made.properties, old_inputs=news, news=news)
    assert plugin.Diff(request, a_context()).changes == provider_pb2.DiffResponse.DIFF_NONE
    wanted = to_struct({**IDENTITY, "run": 2})
    request.news.CopyFrom(wanted)
    answer = plugin.Diff(request, a_context())
    assert (answer.changes, list(answer.diffs)) == (provider_pb2.DiffResponse.DIFF_SOME, ["run"])
    updated = plugin.Update(
        provider_pb2.UpdateRequest(urn=URN, id=made.id, olds=made.properties, news=wanted), a_context()
    )
    assert from_struct(updated.properties)["run"] == 2
    plugin.Delete(provider_pb2.DeleteRequest(urn=URN, id=made.id, properties=updated.properties), a_context())


def test_a_refresh_finds_the_state_as_it_is(plugin: ClusterctlPlugin) -> None:
    state = to_struct({"cluster_id": "0123456789ab"})
    answer = plugin.Read(provider_pb2.ReadRequest(urn=URN, id="0123456789ab", properties=state), a_context())
    assert (answer.id, answer.properties) == ("0123456789ab", state)


def test_an_import_is_refused_with_a_sentence(plugin: ClusterctlPlugin) -> None:
    with pytest.raises(Aborted, match="cannot be imported"):
        plugin.Read(provider_pb2.ReadRequest(urn=URN, id="0123456789ab"), a_context())


def test_a_check_failure_names_the_property(plugin: ClusterctlPlugin) -> None:
    request = provider_pb2.CheckRequest(urn=URN, news=to_struct({**IDENTITY, "run": 0}))
    failures = plugin.Check(request, a_context()).failures
    assert [(failure.property, failure.reason[:8]) for failure in failures] == [("run", "run is 0")]


def test_a_change_that_is_refused_is_said_before_anything_is_done(plugin: ClusterctlPlugin) -> None:
    on_demand, spot = ({**IDENTITY, "launch": {"capacity": capacity}} for capacity in ("on-demand", "spot"))
    made = plugin.Create(provider_pb2.CreateRequest(urn=URN, properties=to_struct(on_demand)), a_context())
    request = provider_pb2.DiffRequest(urn=URN, id=made.id, olds=made.properties, news=to_struct(spot))
    with pytest.raises(Aborted, match="capacity: on-demand → spot"):
        plugin.Diff(request, a_context())


def test_a_type_that_is_not_there_is_named(plugin: ClusterctlPlugin) -> None:
    urn = "urn:pulumi:dev::project::clusterctl:index:Bucket::x"
    with pytest.raises(Aborted, match="clusterctl has no resource clusterctl:index:Bucket"):
        plugin.Check(provider_pb2.CheckRequest(urn=urn), a_context())


def test_the_plugin_takes_secrets_and_says_its_version(plugin: ClusterctlPlugin) -> None:
    configured = plugin.Configure(provider_pb2.ConfigureRequest(), a_context())
    assert configured.acceptSecrets
    assert configured.supportsPreview
    assert plugin.GetPluginInfo(empty_pb2.Empty(), a_context()).version == VERSION
    plugin.Cancel(empty_pb2.Empty(), a_context())
    assert plugin.cancelled.is_set()
