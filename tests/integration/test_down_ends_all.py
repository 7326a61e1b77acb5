"""`down` ends what there is, whatever became of the file, the state or the network."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.integration.kill_campaign import assert_gone
from tests.integration.recorded_stack import INVENTORY
from tests.integration.rehearsed import Rehearsed


def test_a_second_down_says_that_there_is_nothing(ready: Rehearsed) -> None:
    first = ready.run("down", str(ready.folder))
    (foretold,), (deleted,) = (re.findall(rf"(\d+) {word}", first.stderr) for word in ("resources", "deleted"))
    assert foretold == deleted
    again = ready.run("down", str(ready.folder))
    assert again.exit_code == 0
    assert "nothing to end" in again.text
    assert_gone(ready)


def test_a_down_without_the_clusters_state_does_not_say_that_there_is_nothing(ready: Rehearsed, tmp_path: Path) -> None:
    elsewhere = {**ready.env, "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    done = ready.run("down", str(ready.folder), env=elsewhere)
    assert done.exit_code == 4
    assert f"this Pulumi backend does not hold {ready.name}@rehearsal's state" in done.stderr
    assert "bills its hourly price" in done.stderr
    assert "next: clusterctl reap --cluster " in done.stderr
    extended = ready.run("extend", "1h", env=elsewhere)
    assert extended.exit_code == 3
    assert f"the Pulumi backend file://{tmp_path} does not hold {ready.name}@rehearsal's state" in extended.stderr
    forgotten = ready.run("forget", ready.name)
    assert forgotten.exit_code == 4
    assert "is not gone, and was not forgotten" in forgotten.stderr
    file = ready.home / "inventory" / f"{ready.name}@rehearsal.json"
    known = file.read_bytes()
    ready.down()
    file.write_bytes(known)
    done = ready.run("down", str(ready.folder), env=elsewhere)
    assert done.exit_code == 0, done.text
    assert "nothing with the cluster's id " in done.stderr
    assert file.read_bytes() == known, "the credentials may be another account's: it is not forgotten"
    assert ready.run("forget", ready.name).exit_code == 0
    assert not file.exists()


def test_a_project_that_was_renamed_is_said_so_and_nothing_is_lost(ready: Rehearsed) -> None:
    file = ready.folder / "Pulumi.yaml"
    before = file.read_text()
    file.write_text(before.replace(f"name: {ready.name}\n", "name: renamed\n", 1))
    for verb in ("down", "up"):
        refused = ready.run(verb, str(ready.folder))
        assert refused.exit_code == 2, refused.text
        assert f"write name: {ready.name} back" in refused.stderr
    file.write_text(before)
    ready.down()
    assert_gone(ready)


def test_a_cluster_is_ended_although_its_file_is_broken_now(ready: Rehearsed) -> None:
    (ready.folder / "cluster.yaml").write_text("nodes: [\n")
    ready.down()
    assert_gone(ready)


def test_files_that_no_state_knows_go_with_the_cluster(ready: Rehearsed) -> None:
    """As an engine leaves them that is killed while it makes the inventory."""
    state = json.loads(ready.pulumi("stack", "export").stdout)
    resources = state["deployment"]["resources"]
    (lost,) = [row["urn"] for row in resources if row["type"] == INVENTORY]
    for row in resources:
        row["dependencies"] = [urn for urn in row.get("dependencies", ()) if urn != lost]
        row.pop("propertyDependencies", None)
    state["deployment"]["resources"] = [row for row in resources if row["urn"] != lost]
    edited = ready.folder / "edited.json"
    edited.write_text(json.dumps(state))
    assert ready.pulumi("stack", "import", "--file", str(edited)).exit_code == 0
    ready.down()
    assert_gone(ready)


def test_a_network_removed_behind_our_back_does_not_keep_down_from_ending(ready: Rehearsed) -> None:
    ready.fault("stop-region")
    ready.fault("kill", f"{ready.name}-0")
    ready.down()
    assert_gone(ready)
