"""File systems of a killed run are found before a `down`, and a missing right keeps no machine running."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.down_preview import stray_data
from clusterctl_infra.names import ID_TAG, IDENTITY_TYPE

from tests.unit.cli.cloud.fake_answers import clients_of

ID = "0123456789ab"
CLUSTER = StackState(resources=(StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": ID}),))
STRAY = {
    "FileSystemId": "fs-1",
    "CreationTime": datetime(2026, 11, 21, tzinfo=UTC),
    "Tags": [{"Key": ID_TAG, "Value": ID}],
}
DENIED = {("fsx", "describe_file_systems"): "AccessDeniedException"}


def test_a_file_system_in_no_state_is_found_and_a_service_that_refuses_is_told() -> None:
    messages: list[str] = []
    aws = clients_of({("us-west-2", "describe_file_systems", "FileSystems"): [STRAY]}, refused=DENIED)
    assert [(resource.kind, resource.id) for resource in stray_data(aws, CLUSTER, tell=messages.append)] == [
        ("EFS file system", "fs-1")
    ]
    refusal = "AWS did not say whether it has: FSx file system (AccessDeniedException)"
    assert messages == [f"{refusal}. One that is in no state would stay, and bill"]


def test_where_no_file_system_can_be_asked_for_machines_may_end_all_the_same() -> None:
    messages: list[str] = []
    denied = {**DENIED, ("efs", "describe_file_systems"): "AccessDeniedException"}
    assert stray_data(clients_of({}, refused=denied), CLUSTER, tell=messages.append) == ()
    assert len(messages) == 1
