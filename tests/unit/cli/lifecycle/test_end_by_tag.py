"""A cluster whose state cannot be written: what is shown, and which errors are passed on as they are."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.cost.sighting_file import note_look, read_reserved
from clusterctl.engine.stack import Stack
from clusterctl.engine.whereabouts import Whereabouts
from clusterctl.home import Home
from clusterctl.lifecycle.end_by_tag import EndByTag, end_by_tag, is_of_stack, unwritable_reason, what_is_left
from clusterctl.system.disk_space import NoDiskSpace, refuse_without_space
from clusterctl_infra.errors import CloudError, UsageError
from clusterctl_infra.names import ID_TAG
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.conftest import Screen
from tests.unit.cli.cost.paid_cluster import BORN, an_inventory


def an_end(folder: Path, why: NoDiskSpace | OSError) -> EndByTag:
    stack = Stack(directory=folder, name="dev", project="train", is_rehearsal_project=False)
    where = Whereabouts(stack=stack, rehearse=False, name="train", region="us-west-2", shown="stacks/train")
    return EndByTag(where=where, is_agreed=True, again="clusterctl down stacks/train", why=why)


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (
            NoDiskSpace("/home has 4 MiB free, and a change needs 32 MiB there", hint="df -h /home"),
            "/home has 4 MiB free, ",
        ),
        (OSError(errno.EROFS, "Read-only file system", "/home/x"), "/home/x cannot be written (read-only file system)"),
        (OSError(errno.ENOLCK, "No locks available", "/nfs/x"), "/nfs/x is on a file system without locks"),
        (OSError(errno.ENOLCK, "No locks available"), "the home is on a file system without locks"),
    ],
)
def test_why_the_state_cannot_be_written_is_told(why: NoDiskSpace | OSError, sentence: str) -> None:
    assert unwritable_reason(why).startswith(sentence)


@pytest.mark.parametrize(
    "why",
    [
        OSError(errno.EIO, "Input/output error", "/home/x"),
        OSError(errno.EROFS, "Read-only file system", "/home/x"),
        NoDiskSpace("/home has 4 MiB free", hint="df -h /home"),
    ],
)
def test_without_an_id_that_this_computer_knows_the_refusal_stays_what_it_was(
    why: NoDiskSpace | OSError, tmp_path: Path, screen: Screen
) -> None:
    with pytest.raises(type(why)) as raised:
        end_by_tag(an_end(tmp_path, why), screen.output, Home(path=tmp_path), {})
    assert raised.value is why
    assert screen.err == ""


@pytest.mark.parametrize(
    ("stack_dir", "stack_name", "is_its_own"),
    [("here", "dev", True), ("here", "other", False), ("other", "dev", False), ("gone", "dev", True)],
)
def test_another_stack_s_cluster_of_that_name_is_not_ended(
    stack_dir: str, stack_name: str, is_its_own: bool, tmp_path: Path
) -> None:
    for folder in ("here", "other"):
        (tmp_path / folder).mkdir()
    known = replace(an_inventory(), stack_dir=str(tmp_path / stack_dir), stack_name=stack_name)
    end = an_end(tmp_path / "here", OSError(errno.EROFS, "Read-only file system", "/home/x"))
    assert is_of_stack(known, end.where) is is_its_own


@pytest.mark.parametrize(("made_in", "is_its_own"), [("here", True), ("other", False)])
def test_only_the_stack_s_own_cluster_is_asked_about(
    made_in: str, is_its_own: bool, tmp_path: Path, screen: Screen
) -> None:
    for folder in ("here", "other"):
        (tmp_path / folder).mkdir()
    home = home_knowing(tmp_path, stack_dir=str(tmp_path / made_in), stack_name="dev")
    why = OSError(errno.EROFS, "Read-only file system", "/home/x")
    end = replace(an_end(tmp_path / "here", why), is_agreed=False)
    with pytest.raises(UsageError if is_its_own else OSError) as raised:
        end_by_tag(end, screen.output, home, {})
    assert (raised.value is why) is not is_its_own
    assert ("ended by the id 0123456789ab in their tags" in screen.err) is is_its_own


def test_where_nobody_says_whose_the_credentials_are_no_machine_is_said_to_be_ended(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another account's credentials no tag would be found, and so nothing that bills."""
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    home = home_knowing(tmp_path, account_id="444455556666")
    with pytest.raises(CloudError, match="asking whose credentials these are"):
        end_by_tag(an_end(tmp_path, NoDiskSpace("full", hint="df -h")), screen.output, home, {})
    assert "ending" not in screen.err


def test_when_a_reservation_was_cancelled_is_written_down_for_what_it_has_cost(tmp_path: Path) -> None:
    known, home = replace(an_inventory(), region="us-west-2"), Home(path=tmp_path)
    row = {
        "CapacityReservationId": "cr-1",
        "InstanceType": "p5.48xlarge",
        "TotalInstanceCount": 2,
        "State": "active",
        "CreateDate": BORN,
        "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}],
    }
    rows, messages = [row], list[str]()
    clients = clients_of({("us-west-2", "describe_capacity_reservations", "CapacityReservations"): rows})
    note_look(clients, home.observed_file(known.cluster_id), known.cluster_id)

    def it_is_gone_once_cancelled() -> None:
        if messages:
            rows.clear()

    assert what_is_left(known, clients, home, tell=messages.append, pause=it_is_gone_once_cancelled) == []
    assert messages == ["capacity reservation cr-1"]
    assert read_reserved(home.observed_file(known.cluster_id))["cr-1"].ended_at is not None


def test_a_machine_list_that_aws_does_not_give_keeps_no_reservation_alive(tmp_path: Path) -> None:
    clients = clients_of({}, refused={("ec2", "describe_instances"): "InternalError"})
    known = replace(an_inventory(), region="us-west-2")
    left = what_is_left(known, clients, Home(path=tmp_path), tell=no_message, pause=lambda: None)
    assert left[0].startswith("instance: not known (")
    assert "describe_capacity_reservations" in clients.asked


def home_knowing(folder: Path, **facts: object) -> Home:
    """A home with the inventory of a cluster."""
    home = Home(path=folder / "home")
    home.inventory_dir.mkdir(parents=True)
    home.inventory_file("train").write_text(json.dumps(inventory_to_json(an_inventory(**facts))))
    return home


def no_message(what: str) -> None:
    raise AssertionError(what)


def test_a_folder_without_room_is_refused_with_what_there_is_and_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoDiskSpace, match=r"free, and a change of a cluster needs .* there: nothing was changed"):
        refuse_without_space(tmp_path, needed_bytes=2**62)
