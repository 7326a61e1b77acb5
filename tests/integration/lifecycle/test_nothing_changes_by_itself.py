"""A later `up` replaces no node because time went by, an image came out, or others joined or left."""

from __future__ import annotations

import json
from typing import Any  # parsed JSON

from tests.integration.rehearsed import Rehearsed


def test_neither_a_newer_image_nor_a_moved_deadline_replaces_anybody(ready: Rehearsed) -> None:
    ids = ready.instance_ids()
    ready.fault("new-images", "2027-01-01")
    assert replaced_or_made(ready) == []
    ready.up()
    assert ready.instance_ids() == ids
    ready.write(machines="none", caps={"runtime": "3h"})
    assert replaced_or_made(ready) == []


def test_a_resize_leaves_the_others_running_and_tells_them(light: Rehearsed) -> None:
    light.up()
    ids, starts = light.instance_ids(), light.starts()
    assert len(starts) == 4

    light.write(machines="process", nodes=6)
    light.up()
    assert {name: light.instance_ids()[name] for name in ids} == ids
    assert {name: light.starts()[name] for name in starts} == starts
    assert said_by_all(light, "echo $NNODES") == ["6"] * 6
    newest = f"grep -qw {light.name}-5 /etc/hosts && echo known || echo unknown"
    assert said_by_all(light, newest) == ["known"] * 6

    light.write(machines="process", nodes=4)
    light.up()
    assert light.instance_ids() == ids
    assert light.starts() == starts
    assert said_by_all(light, "echo $NNODES") == ["4"] * 4
    assert said_by_all(light, newest) == ["unknown"] * 4


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


def said_by_all(cluster: Rehearsed, command: str) -> list[str]:
    """What each node printed for `command`."""
    rows = [
        json.loads(line) for line in cluster.ok("ssh", "--node", "all", "--json", "--command", command).splitlines()
    ]
    return [row["stdout"].strip() for row in rows if "stdout" in row]


def replaced_or_made(cluster: Rehearsed) -> list[str]:
    """The resources that a preview would create, replace or delete."""
    done = cluster.pulumi("preview", "--json")
    assert done.exit_code == 0, done.text
    steps: list[dict[str, Any]] = json.loads(done.stdout)["steps"]
    return [step["urn"] for step in steps if step["op"] not in ("same", "update", "read")]
