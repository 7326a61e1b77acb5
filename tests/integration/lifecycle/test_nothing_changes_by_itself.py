"""A later `up` replaces no node because time went by, an image came out, or others joined or left."""

from __future__ import annotations

import json
from datetime import timedelta

from tests.integration.recorded_stack import in_state
from tests.integration.rehearsed import Rehearsed


def test_neither_a_newer_image_nor_a_moved_deadline_replaces_anything(ready: Rehearsed) -> None:
    before, deadline = births(ready), ready.deadline()
    ready.fault("new-images", "2027-01-01")
    ready.write(machines="none", caps={"runtime": "3h"})
    ready.up()
    assert ready.deadline() == deadline + timedelta(hours=2)
    assert births(ready) == before


def test_a_resize_leaves_the_others_running_and_tells_them(light: Rehearsed) -> None:
    light.write(machines="process", nodes=2)
    light.up()
    ids, starts = light.instance_ids(), light.starts()
    assert len(starts) == 2

    light.write(machines="process", nodes=4)
    light.up()
    assert {name: light.instance_ids()[name] for name in ids} == ids
    assert {name: light.starts()[name] for name in starts} == starts
    number_and_newest = f"echo $NNODES; grep -qw {light.name}-3 /etc/hosts && echo known || echo unknown"
    assert outputs_of_all(light, number_and_newest) == ["4\nknown"] * 4

    light.write(machines="process", nodes=2)
    light.up()
    assert light.instance_ids() == ids
    assert light.starts() == starts
    assert outputs_of_all(light, number_and_newest) == ["2\nunknown"] * 2


def test_up_names_what_waits_and_what_is_made_anew_and_does_just_that(ready: Rehearsed) -> None:
    before = ready.instance_ids()
    ready.write(machines="none", imds="users")
    waits = ready.run("up", str(ready.folder))
    assert f"{ready.name}-[0-1]: imds: takes effect when a node is replaced" in waits.stderr
    assert ready.instance_ids() == before
    notes = [str(row["note"]) for row in ready.nodes().values()]
    assert [note.endswith("imds: takes effect when a node is replaced") for note in notes] == [True, True]

    ready.write(machines="none", image="dlami-pytorch-2.7-ubuntu-22.04")
    anew = ready.run("up", str(ready.folder))
    assert f"{ready.name}-[0-1]: replaced, the data on their disks is lost: image ami-" in anew.stderr
    assert "takes effect" not in anew.stderr
    assert not set(before.values()) & set(ready.instance_ids().values())
    assert not [row["note"] for row in ready.nodes().values() if "takes effect" in str(row["note"])]


def outputs_of_all(cluster: Rehearsed, command: str) -> list[str]:
    """What each node printed for `command`."""
    rows = [
        json.loads(line) for line in cluster.ok("ssh", "--node", "all", "--json", "--command", command).splitlines()
    ]
    return [row["stdout"].strip() for row in rows if "stdout" in row]


def births(cluster: Rehearsed) -> dict[str, tuple[str, str]]:
    """URN → id, and when the engine made it, of each resource in the state: a name as id outlives a replacement."""
    return {row["urn"]: (row.get("id", ""), row["created"]) for row in in_state(cluster)}
