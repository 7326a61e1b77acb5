"""Storage and scripts of cluster.yaml, all the way from the file to the nodes."""

from __future__ import annotations

from tests.integration.rehearsed import Rehearsed

STORAGE = [
    {"mount": "/shared", "fsx-lustre": {"size": "1200GiB"}},
    {"mount": "/home/all", "efs": {}},
    {"mount": "/data", "s3": {"bucket": "sets", "prefix": "imagenet/"}},
    {"mount": "/scratch", "nvme": {}},
]
TYPES = ["fuse.simulated-lustre", "fuse.simulated-nfs4", "fuse.simulated-mount-s3", "overlay"]


def test_nodes_come_up_with_what_the_file_names_and_a_script_that_fails_is_named(booted: Rehearsed) -> None:
    bucket = booted.home / "rehearsal/buckets/sets/imagenet"
    bucket.mkdir(parents=True)
    (bucket / "a.txt").write_text("hello")
    (booted.folder / "setup.sh").write_text(
        "#!/bin/sh\ncp /data/a.txt /scratch/ && echo $NODE_RANK >/shared/rank-$NODE_RANK\n"
    )
    booted.write(machines="nspawn", storage=STORAGE, scripts=["setup.sh"], packages=["htop"])
    booted.up()
    mounts = " ".join(str(row["mount"]) for row in STORAGE)
    shown = booted.ok("ssh", "--node", "1", "--", f"for path in {mounts}; do findmnt -no FSTYPE $path; done")
    assert shown.split() == TYPES
    assert booted.ok("ssh", "--node", "1", "--", "cat /scratch/a.txt /shared/rank-0 /shared/rank-1") == "hello0\n1\n"
    assert booted.ok("ssh", "--node", "1", "--", "clusterctl-node barrier x --timeout 1s; echo $?").strip() == "1"

    (booted.folder / "setup.sh").write_text("#!/bin/sh\necho looking for the tokenizer\ncat /shared/tokenizer.json\n")
    failed = booted.run("up", str(booted.folder))
    assert failed.exit_code == 4, failed.text
    for line in (f"{booted.name}-1: failed in scripts: setup.sh: exit 1 after ", "setup.sh: looking for the tokenizer"):
        assert line in failed.text

    booted.ok("ssh", "--node", "0", "sudo", "touch", "/shared/tokenizer.json")
    before = booted.instance_ids()
    left = booted.run("up", str(booted.folder))
    assert left.exit_code == 4, left.text
    assert f"  failed   {booted.name}-1 in scripts: setup.sh: exit 1 after " in left.stderr
    assert f"{booted.name}-0 alone: clusterctl replace --node 0 --cluster {booted.name}@rehearsal\n" in left.stderr
    assert booted.instance_ids() == before
    replaced = booted.up("--replace-failed")
    assert set(booted.instance_ids().values()).isdisjoint(before.values()), replaced
    assert {row["state"] for row in booted.nodes().values()} == {"ready"}
