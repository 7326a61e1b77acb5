"""`storage:` as a person gets it wrong: what AWS does not make is named with what it does."""

from __future__ import annotations

import pytest
from clusterctl_infra.errors import ConfigError

from tests.unit.infra.config.config_texts import parsed

HEAD = "name: train\nregion: us-west-2\nnodes: 4\ninstance_type: {type}\n"
ADOPTED = "fs-0a1b2c3d4e5f67890"


def problems(storage: str, *, type: str = "p5.48xlarge") -> list[str]:
    """What is wrong with a cluster that has this storage."""
    text = f"{HEAD.format(type=type)}storage: {storage}\n"
    try:
        parsed(text)
    except ConfigError as e:
        return list(e.problems)
    return []


def linked(repository: str, more: str = "size: 4800GiB") -> str:
    """A file system with a link to a bucket."""
    return f"{{fsx-lustre: {{{more}, data_repository: {{{repository}}}}}}}"


@pytest.mark.parametrize(
    "storage",
    [
        "[{mount: /shared, fsx-lustre: {size: 1200GiB}}]",
        "[{mount: /shared, fsx-lustre: {size: 2.34375TiB, throughput: 1000, on_delete: delete}}]",
        "[{mount: /shared, fsx-lustre: {size: 4800GiB, type: scratch}}]",
        "[{mount: /shared, fsx-lustre: {size: 4800GiB, data_repository: {bucket: ml-datasets}}}]",
        "[{mount: /a, fsx-lustre: {size: 1200GiB, type: scratch, data_repository: {bucket: abc, exports: [deleted]}}}]",
        "[{mount: /a, fsx-lustre: {size: 2400GiB, data_repository: {bucket: a-b, imports: [], exports: [new]}}}]",
        "[{mount: /shared, fsx-lustre: {size: 4800GiB, writable: false, data_repository: {bucket: ml-datasets}}}]",
        f"[{{mount: /shared, fsx-lustre: {{file_system_id: {ADOPTED}, writable: false}}}}]",
        f"[{{mount: /mnt/reference-data/v1.2, efs: {{file_system_id: {ADOPTED}}}}}]",
        "[{mount: /home/ubuntu/work, efs: {on_delete: delete}}, {mount: /home/ubuntu/work2, efs: {}}]",
        "[{mount: /data, s3: {bucket: ml-datasets, prefix: imagenet/dt=2026-11-01/}}]",
        "[{mount: /opt/data, s3: {bucket: ml.datasets, writable: true}}]",
        "[{mount: /scratch, nvme: {}}]",
    ],
)
def test_what_aws_makes_is_taken(storage: str) -> None:
    assert problems(storage) == []


@pytest.mark.parametrize(
    ("mount", "sentence"),
    [
        ("shared", "not an absolute path"),
        ("//shared", "not an absolute path"),
        ("/shared/../etc", "not an absolute path"),
        ("/", "the whole machine"),
        ("/shared/", "ends in a slash (did you mean /shared?)"),
        ("/etc", "/etc belongs to the system"),
        ("/usr/local/data", "/usr belongs to the system"),
        ("/run/x", "/run belongs to the system"),
        ("/home", "it would hide the login user's keys"),
        ("/home/ubuntu", "it would hide the login user's keys"),
        ("/home/ubuntu/.ssh", "letters, digits"),
        ("/opt", "drivers and libraries"),
        ("/opt/amazon/efa", "EFA's libraries are there"),
        ("/a b", "letters, digits"),
        ("/-a", "letters, digits"),
        ("/\u00fc", "letters, digits"),
        ("'/a\"b'", "letters, digits"),
        (f"/{'a' * 100}", "101 characters; the most is 100"),
    ],
)
def test_a_mount_hides_nothing_that_a_node_needs(mount: str, sentence: str) -> None:
    (line,) = problems(f"[{{mount: {mount}, efs: {{}}}}]")
    assert "storage[0].mount" in line
    assert sentence in line


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        ("{fsx-lustre: {size: 3600GiB}}", "'3600GiB': not a size that AWS makes: 2400GiB or 4800GiB"),
        ("{fsx-lustre: {size: 1300GiB}}", "not a size that AWS makes: 1200GiB or 2400GiB"),
        ("{fsx-lustre: {size: 500GiB}}", "not a size that AWS makes: the least is 1200GiB"),
        ("{fsx-lustre: {size: 4800}}", "a number without a unit; write 4800GiB"),
        ("{fsx-lustre: {}}", "size is missing: write size: 1200GiB, or file_system_id of one that exists"),
        (
            "{fsx-lustre: {size: 4800GiB, throughput: 300}}",
            "'300': MB/s per TiB; AWS has 125, 250, 500, 1000 (did you mean 125 or 250?)",
        ),
        ("{fsx-lustre: {size: 4800GiB, type: scratch, throughput: 250}}", "all have 200 MB/s per TiB; leave it out"),
        ("{fsx-lustre: {size: 4800GiB, type: SCRATCH_2}}", "allowed are persistent, scratch"),
        (f"{{fsx-lustre: {{size: 4800GiB, file_system_id: {ADOPTED}}}}}", "names one that exists: leave out size"),
        (f"{{efs: {{on_delete: retain, file_system_id: {ADOPTED}}}}}", "names one that exists: leave out on_delete"),
        ("{efs: {file_system_id: fs-12}}", "'fs-12': a file system's id is fs- and 8 or 17 hex digits"),
        ("{efs: {encrypted: yes}}", "'yes': write true or false"),
        ("{efs: {on_delete: keep}}", "allowed are retain, delete"),
        ("{fsx_lustre: {size: 4800GiB}}", "(did you mean fsx-lustre?)"),
        ("{s3: {bucket: s3://ml-datasets/imagenet}}", "(did you mean bucket: ml-datasets, prefix: imagenet/?)"),
        ("{s3: {bucket: ML_Datasets}}", "3 to 63 lower-case letters"),
        ("{s3: {bucket: ml-datasets, prefix: imagenet}}", "'imagenet': begins without a slash and ends in one"),
        ("{s3: {bucket: ml-datasets, prefix: /imagenet/}}", "(did you mean imagenet/?)"),
        ("{s3: {bucket: ml-datasets, prefix: '*/'}}", "letters, digits and"),
        ("{s3: {bucket: ml-datasets, prefix: '${aws:username}/'}}", "letters, digits and"),
        (linked("bucket: s3://ml-datasets/imagenet"), "(did you mean bucket: ml-datasets, prefix: imagenet/?)"),
        (linked("prefix: imagenet/"), "data_repository.bucket: missing"),
        (linked("bucket: ml-datasets, prefix: imagenet"), "'imagenet': begins without a slash and ends in one"),
        (
            linked("bucket: ml-datasets, path: sets"),
            "'sets': begins with a slash and ends without one (did you mean /se",
        ),
        (linked("bucket: ml-datasets, path: /sets/"), "(did you mean /sets?)"),
        (linked("bucket: ml-datasets, path: /sets/../x"), "between single slashes, as in /imagenet"),
        (linked(f"bucket: ml-datasets, path: /{'a' * 100}"), "101 characters; the most is 100"),
        (linked("bucket: ml-datasets, imports: true"), "'true': not a list: write [a, b]"),
        (linked("bucket: ml-datasets, exports: [moved]"), "'moved': allowed are new, changed, deleted"),
        (linked("bucket: ml-datasets, exports: [new, new]"), "each of new, changed, deleted at most once"),
        (
            linked("bucket: ml-datasets, imports: []"),
            "imports and exports are both empty, so the link would do nothing",
        ),
        (linked("bucket: ml-datasets, export: [new]"), "unknown key (did you mean exports?)"),
        (
            linked("bucket: ml-datasets, exports: [new]", "size: 4800GiB, writable: false"),
            "data_repository.exports: with writable: false nodes change nothing",
        ),
        (
            linked("bucket: ml-datasets", f"file_system_id: {ADOPTED}"),
            "data_repository: no existing file system is changed; link the bucket yourself and leave this out",
        ),
        ("{efs: {access_point: fsap-0a1b2c3d4e5f67890}}", "not built yet: nodes would need AWS's mount helper"),
        ("{efs: {encryption_in_transit: true}}", "amazon-efs-utils, of which AWS has no package for Ubuntu"),
        (
            "{fsx-lustre: {size: 4800GiB, efa: true}}",
            "not built yet: at every boot, before the mount, nodes would have",
        ),
        ("{fsx-lustre: {size: 4800GiB, access_point: x}}", "access_point: unknown key"),
        ("{}", "name exactly one of fsx-lustre, efs, s3, nvme"),
        ("{efs: {}, nvme: {}}", "name exactly one of fsx-lustre, efs, s3, nvme"),
        ("{nvme: {level: mirror}}", "allowed are stripe, single"),
    ],
)
def test_what_aws_does_not_make_is_named_with_what_it_does(storage: str, sentence: str) -> None:
    inner = storage[1:-1]
    lines = problems(f"[{{mount: /a{', ' if inner else ''}{inner}}}]")
    assert any(sentence in line for line in lines), lines


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        ("[{mount: /a, efs: {}}, {mount: /a, efs: {}}]", "storage[1].mount: '/a': mounted twice"),
        ("[{mount: /a/b, efs: {}}, {mount: /a, efs: {}}]", "storage[0].mount: '/a/b': inside /a, which is a mount too"),
        (
            f"[{{mount: /a, efs: {{file_system_id: {ADOPTED}}}}}, {{mount: /b, efs: {{file_system_id: {ADOPTED}}}}}]",
            f"storage[1].efs.file_system_id: '{ADOPTED}': mounted at /a already",
        ),
        ("[{mount: /a, nvme: {}}, {mount: /b, nvme: {}}]", "storage[1].nvme: a node's disks are one volume"),
    ],
)
def test_mounts_that_do_not_go_together_are_said(storage: str, sentence: str) -> None:
    assert any(sentence in line for line in problems(storage))


def test_neighbours_whose_names_begin_alike_are_not_nested() -> None:
    assert problems("[{mount: /data, efs: {}}, {mount: /data2, efs: {}}]") == []


def test_local_disks_need_a_machine_that_has_some() -> None:
    (line,) = problems("[{mount: /scratch, nvme: {}}]", type="c5.large")
    assert "storage[0].nvme: c5.large has no disks of its own" in line


def test_all_problems_of_storage_are_said_at_once() -> None:
    lines = problems(
        "[{mount: /etc, fsx-lustre: {size: 3600GiB, throughput: 7}}, {mount: /b, s3: {bucket: x, prefix: y}}]"
    )
    assert len(lines) == 5


def test_all_problems_of_a_linked_file_system_are_said_at_once() -> None:
    storage = linked("bucket: ML, path: x, imports: [moved], exports: [new, new]", "size: 3600GiB, efa: true")
    assert len(problems(f"[{{mount: /a, {storage[1:-1]}}}]")) == 6
    storage = linked(
        "bucket: ml-datasets, exports: [new]", f"size: 4800GiB, writable: false, file_system_id: {ADOPTED}"
    )
    (line,) = problems(f"[{{mount: /a, {storage[1:-1]}}}]")
    assert all(word in line for word in ("leave out size", "link the bucket yourself", "writable: false nodes change"))


def test_too_many_mounts_are_refused() -> None:
    rows = ", ".join(f"{{mount: /m{number}, s3: {{bucket: ml-datasets}}}}" for number in range(17))
    assert any("17 mounts; the most is 16" in line for line in problems(f"[{rows}]"))


MODELS = "[{mount: /words, s3: {bucket: words}}, {mount: /m, s3: {bucket: models, prefix: team/, writable: true}}]"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("s3://models/team", ""),
        ("s3://models/team/flows/", ""),
        ("s3://models/teamwork", "mounted by nothing in storage"),
        ("s3://models", "mounted by nothing in storage"),
        ("s3://words/flows", "mounted read-only: add writable: true there"),
        ("s3://elsewhere/a", "mounted by nothing in storage"),
        ("models/team", "write s3://BUCKET/PATH"),
        ("s3://models/team/x y", "letters, digits and"),
        ("s3://models/team/../other", "a path without . and .."),
    ],
)
def test_workflow_storage_lies_in_a_bucket_that_nodes_write_to(address: str, sentence: str) -> None:
    lines = problems(f"{MODELS}\nworkflow_storage: '{address}'")
    assert [sentence in line for line in lines] == ([True] if sentence else []), lines
    assert all("workflow_storage" in line for line in lines)
