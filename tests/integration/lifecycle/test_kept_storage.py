"""File systems outlive nodes: made before them, kept at down with their price, mounted by the next run, then ended."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any  # parsed JSON

from tests.integration.kill_campaign import assert_up
from tests.integration.rehearsed import CLUSTERCTL, Done, Rehearsed, wait_until

SHARED: dict[str, Any] = {"mount": "/shared", "fsx-lustre": {"size": "2400GiB"}}
LINK = "DataRepositoryAssociation"
WORK: dict[str, Any] = {"mount": "/work", "efs": {}}
SCRATCH: dict[str, Any] = {
    "mount": "/scratch",
    "fsx-lustre": {"size": "1200GiB", "type": "scratch", "on_delete": "delete"},
}
DATA: dict[str, Any] = {"mount": "/data", "s3": {"bucket": "ml-datasets", "prefix": "imagenet/"}}


def linked(**repository: Any) -> dict[str, Any]:
    """The shared file system, with a bucket behind it."""
    return {**SHARED, "fsx-lustre": {**SHARED["fsx-lustre"], "data_repository": {"bucket": "sets", **repository}}}


def in_region(cluster: Rehearsed) -> dict[str, list[str]]:
    """Resource type → ids, of what the rehearsed region has now."""
    found: dict[str, list[str]] = {}
    for row in cluster.resources():
        found.setdefault(row.token.rpartition(":")[2], []).append(row.id)
    return found


def shares(cluster: Rehearsed) -> Path:
    """Where the contents of file systems are in this rehearsal."""
    return cluster.home / "rehearsal" / "shares"


def ended(done: Done, *, exit_code: int, message: str) -> None:
    assert done.exit_code == exit_code, done.text
    assert message in done.text


def test_a_bucket_that_is_not_there_is_said_before_anything_is_made(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"buckets": ["another"]}, storage=[SHARED, DATA])
    refused = recorded.run("up", str(recorded.folder))
    ended(refused, exit_code=1, message="reading S3 Bucket (ml-datasets)")
    assert in_region(recorded) == {}


def test_storage_outlives_nodes_until_all_is_ended(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", storage=[linked(), WORK, SCRATCH, DATA])
    booted.up()
    before = in_region(booted)
    assert len(before["Instance"]) == 2
    assert (len(before["LustreFileSystem"]), len(before["FileSystem"]), len(before["MountTarget"])) == (2, 1, 1)
    booted.ok("ssh", "--node", "0", "echo step 7 | sudo tee /shared/checkpoint /work/log")
    assert booted.ok("ssh", "--node", "1", "cat", "/shared/checkpoint", "/work/log") == "step 7\nstep 7\n"

    refuses_to_lose_data(booted)
    down = booted.run("down", str(booted.folder))
    ended(down, exit_code=0, message="no node runs; network and storage are kept")
    assert "$0.48/h" in down.text
    assert "/work (EFS, " in down.text
    kept = in_region(booted)
    assert "Instance" not in kept
    assert "CapacityReservation" not in kept
    assert kept["FileSystem"] == before["FileSystem"]
    assert len(kept["LustreFileSystem"]) == 1  # the scratch one ended with the nodes
    protected = booted.pulumi("destroy", "--yes", "--skip-preview")
    assert protected.exit_code != 0, "plain pulumi ended what holds data"
    assert in_region(booted)["FileSystem"] == before["FileSystem"]

    booted.up()
    again = in_region(booted)
    assert len(again["Instance"]) == 2
    assert (again["FileSystem"], len(again["LustreFileSystem"])) == (before["FileSystem"], 2)
    seen = booted.ok("ssh", "--node", "1", "--command", "cat /shared/checkpoint /work/log; ls /scratch/")
    assert seen == "step 7\nstep 7\n", "kept what was written, and nothing on the new scratch one"
    preview = booted.pulumi("preview", "--expect-no-changes", "--refresh")
    assert preview.exit_code == 0, preview.text

    gone = booted.run("down", str(booted.folder), "--all")
    ended(gone, exit_code=0, message="/shared (FSx for Lustre, 2400 GiB, ")
    assert in_region(booted) == {}
    assert list(shares(booted).iterdir()) == []


def refuses_to_lose_data(cluster: Rehearsed) -> None:
    """Neither `up` nor `down` takes a file without the mount that holds data; the file is as before then."""
    written = cluster.config["storage"]
    cluster.write(machines="nspawn", storage=[WORK])
    for verb in ("up", "down"):
        refused = cluster.run(verb, str(cluster.folder))
        ended(refused, exit_code=2, message="/shared (FSx for Lustre, 2400 GiB, ")
    cluster.write(machines="nspawn", storage=written)


def test_storage_is_kept_without_room_for_nodes_linked_anew_and_mounted_twice(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"capacity": {"p5.48xlarge": 1}}, storage=[WORK])
    refused = recorded.run("up", str(recorded.folder))
    ended(refused, exit_code=1, message="InsufficientInstanceCapacity")
    assert "No node runs; storage and network are kept: /work (EFS, " in refused.text
    assert len(in_region(recorded)["FileSystem"]) == 1

    recorded.write(machines="none", storage=[WORK, linked()])
    recorded.down()
    assert "LustreFileSystem" not in in_region(recorded)

    recorded.up()
    (own,), (link,) = (in_region(recorded)[kind] for kind in ("LustreFileSystem", LINK))
    before = recorded.instance_ids()
    adopted = {"mount": "/again", "fsx-lustre": {"file_system_id": own, "writable": False}}
    recorded.write(machines="none", storage=[WORK, linked(exports=["new"]), adopted])
    recorded.up()
    assert in_region(recorded)["LustreFileSystem"] == [own]
    (second,) = in_region(recorded)[LINK]
    assert second != link, "a direction that is begun makes another link, of the same file system"
    assert not set(recorded.instance_ids().values()) & set(before.values()), "what a node mounts is decided at birth"
    recorded.ok("down", str(recorded.folder), "--all")
    assert in_region(recorded) == {}


def test_a_file_system_that_a_killed_up_asked_for_is_ended_and_made_anew(recorded: Rehearsed) -> None:
    """Of what holds data, a repair ends only what the broken run itself made: nobody has written to that."""
    recorded.keep_steps()
    recorded.write(machines="none", settings={"storage_s": 600}, storage=[SHARED])
    argv = [CLUSTERCTL, "up", str(recorded.folder)]
    with (
        (recorded.folder.parent / "killed.txt").open("w") as output,
        subprocess.Popen(
            argv, env=recorded.env, cwd=recorded.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ) as up,
    ):
        try:
            wait_until(lambda: "LustreFileSystem" in in_region(recorded), what="FSx was asked for", timeout_s=90)
        finally:
            up.kill()
    (lost,) = in_region(recorded)["LustreFileSystem"]

    recorded.write(machines="none", storage=[SHARED])
    again = recorded.run("up", str(recorded.folder))
    ended(again, exit_code=0, message=f"ending FSx file system {lost}: it is in no Pulumi state")
    (made,) = in_region(recorded)["LustreFileSystem"]
    assert made != lost
    assert_up(recorded, nodes=2, machines="none")
