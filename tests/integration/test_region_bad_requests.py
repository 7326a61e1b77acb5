"""Requests that no client of AWS's own sends, signed and on the wire: each has an answer, and the log stays empty.

Needs loopback, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from clusterctl_infra.region_keys import RegionAccess
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.region.client import running_region

from tests.integration.region_access import access_of

REGION = "us-west-2"


@pytest.fixture
def home(own_home: Path) -> Iterator[RehearsalHome]:
    found = rehearsal_home({"CLUSTERCTL_HOME": str(own_home)})
    yield found
    running = running_region(found)
    if running is not None:
        os.kill(running["pid"], signal.SIGKILL)


def _answer(access: RegionAccess, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
    """Status and text of the answer to a signed request."""
    keys = access.keys
    url = f"{access.endpoint_url}{path}"
    request = AWSRequest(method=method, url=url, data=body)
    S3SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), "s3", REGION).add_auth(request)
    sent = Request(url, method=method, data=body, headers=dict(request.headers))
    try:
        with urlopen(sent, timeout=20) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as e:
        return e.code, e.read().decode()


def test_a_bad_request_to_s3_is_answered_as_s3_does(home: RehearsalHome) -> None:
    access = access_of(home)
    client = boto3.client(
        "s3",
        region_name=REGION,
        endpoint_url=access.endpoint_url,
        aws_access_key_id=access.keys.access_key_id,
        aws_secret_access_key=access.keys.secret_access_key,
    )
    with contextlib.closing(client):
        client.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": REGION})
        client.put_object(Bucket="data", Key="shard", Body=b"0123456789")
        with pytest.raises(ClientError, match=r"InvalidArgument.*must be an integer between 0 and 2147483647"):
            client.list_objects_v2(Bucket="data", MaxKeys=-1)
        part = client.get_object(Bucket="data", Key="shard", Range="bytes=2-4")
        assert (part["Body"].read(), part["ContentRange"]) == (b"234", "bytes 2-4/10")
    status, text = _answer(access, "GET", "/data?list-type=2&max-keys=many")
    assert (status, "<Code>InvalidArgument</Code>" in text, "<ArgumentValue>many<" in text) == (400, True, True)
    status, text = _answer(access, "PUT", "/more", b"<CreateBucketConfiguration>")
    assert (status, "<Code>MalformedXML</Code>" in text) == (400, True)
    assert home.log_file.read_text() == ""


def test_a_body_without_a_length_is_refused_and_its_connection_ends(home: RehearsalHome) -> None:
    """What follows would be read as the next request."""
    host, port = access_of(home).endpoint_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"PUT /data/key HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 411 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert home.log_file.read_text() == ""
