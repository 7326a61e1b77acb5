"""The S3 server of a rehearsal: every name is a bucket, with what lies in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_rehearsal.storage.buckets import application
from moto.s3.models import s3_backends
from werkzeug.test import Client

SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=simulated/20261121/us-west-2/s3/aws4_request, SignedHeaders=host, "
    "Signature=0"
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "sets/imagenet").mkdir(parents=True)
    (tmp_path / "sets/imagenet/a.txt").write_text("hello")
    yield Client(application(tmp_path))
    s3_backends.reset()


def test_a_bucket_holds_what_lies_in_the_folder_of_its_name(server: Client) -> None:
    assert server.get("/sets/imagenet/a.txt", headers=SIGNED).text == "hello"
    assert "<Key>imagenet/a.txt</Key>" in server.get("/sets?list-type=2", headers=SIGNED).text


def test_a_bucket_without_a_folder_is_empty(server: Client) -> None:
    answer = server.get("/other?list-type=2", headers=SIGNED)
    assert (answer.status_code, "<Key>" in answer.text) == (200, False)


def test_what_was_written_is_read_again(server: Client) -> None:
    assert server.put("/sets/new", headers=SIGNED, data=b"x").status_code == 200
    assert server.get("/sets/new", headers=SIGNED).data == b"x"
