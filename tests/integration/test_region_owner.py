"""Who else is on the computer reaches the region's server, and gets nothing from it. Needs loopback, nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from clusterctl.cloud.clients import AwsClients
from clusterctl.engine.region import region_access
from clusterctl.home import Home
from clusterctl_infra.errors import RehearsalError
from clusterctl_infra.region_keys import KeyPair, RegionAccess
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable, ensure_region, running_region
from clusterctl_rehearsal.server.connections import LIMIT
from clusterctl_rehearsal.server.http import MAX_BODY_BYTES
from clusterctl_rehearsal.verbs import main

from tests.integration.region_access import access_of
from tests.integration.rehearsed import wait_until

FLOOD = 400
OTHERS = 60
"""Files that the server needs for itself and its owner's connections."""


@pytest.fixture
def home(own_home: Path) -> Iterator[RehearsalHome]:
    found = rehearsal_home({"CLUSTERCTL_HOME": str(own_home)})
    yield found
    running = running_region(found)
    if running is not None:
        os.kill(running["pid"], signal.SIGKILL)


def _code(access: RegionAccess, service: str, operation: str) -> str:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=20, read_timeout=20)
    client = boto3.client(
        service,  # type: ignore[call-overload]  # its types want the name as a literal
        region_name="us-west-2",
        endpoint_url=access.endpoint_url,
        aws_access_key_id=access.keys.access_key_id,
        aws_secret_access_key=access.keys.secret_access_key,
        config=config,
    )
    with contextlib.closing(client), pytest.raises(ClientError) as refused:
        getattr(client, operation)()
    return str(refused.value.response["Error"]["Code"])


def _connected(home: RehearsalHome) -> socket.socket:
    host, port = ensure_region(home)["endpoint"].removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("ec2", "describe_instances"),
        ("sts", "get_caller_identity"),
        ("stepfunctions", "list_state_machines"),
        ("efs", "describe_file_systems"),
    ],
)
def test_calls_of_aws_are_answered_to_the_regions_own_key_pair_alone(
    home: RehearsalHome, service: str, operation: str
) -> None:
    access = access_of(home)
    anybody = KeyPair(access_key_id="rehearsal", secret_access_key="rehearsal")
    guess = KeyPair(access_key_id=access.keys.access_key_id, secret_access_key="a guess")
    url = access.endpoint_url
    assert _code(RegionAccess(endpoint_url=url, keys=anybody), service, operation) == "InvalidClientTokenId"
    assert _code(RegionAccess(endpoint_url=url, keys=guess), service, operation) == "SignatureDoesNotMatch"
    assert AwsClients.at(access, region="us-west-2").account() == "000000000000"


def test_the_exports_of_rehearse_env_are_what_another_client_needs(
    home: RehearsalHome, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["env"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["export"] * 5
    exported = dict(word.split("=", 1) for line in lines for word in shlex.split(line)[1:])
    assert exported["AWS_REGION"] == exported["AWS_DEFAULT_REGION"]
    client = boto3.client(
        "sts",
        region_name=exported["AWS_DEFAULT_REGION"],
        endpoint_url=exported["AWS_ENDPOINT_URL"],
        aws_access_key_id=exported["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=exported["AWS_SECRET_ACCESS_KEY"],
    )
    assert client.get_caller_identity()["Account"] == "000000000000"
    client.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /clusterctl/list HTTP/1.1\r\nX-Clusterctl-Token: \xe9\xff\r\n\r\n", 403),
        (b"POST /clusterctl/list HTTP/1.1\r\n\r\n", 403),
        (b"POST / HTTP/1.1\r\nAuthorization: \xe9\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\n\r\n", 403),
    ],
)
def test_what_is_no_request_of_the_owner_is_refused_and_the_log_stays_empty(
    home: RehearsalHome, request_bytes: bytes, status: int
) -> None:
    with _connected(home) as connection:
        connection.sendall(request_bytes)
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    with RegionClient(home) as client:
        client.ask("ping", {})
    assert home.log_file.read_text() == ""


def test_an_object_that_is_too_large_is_refused_before_it_is_sent(home: RehearsalHome) -> None:
    access = access_of(home)
    client = boto3.client(
        "s3",
        region_name="us-west-2",
        endpoint_url=access.endpoint_url,
        aws_access_key_id=access.keys.access_key_id,
        aws_secret_access_key=access.keys.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )
    with contextlib.closing(client):
        client.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        client.put_object(Bucket="data", Key="fits", Body=bytes(MAX_BODY_BYTES))
        with pytest.raises(ClientError, match="EntityTooLarge"):
            client.put_object(Bucket="data", Key="shard", Body=bytes(8 * MAX_BODY_BYTES))
        assert [row["Key"] for row in client.list_objects_v2(Bucket="data")["Contents"]] == ["fits"]


def test_a_flood_of_idle_connections_neither_fills_the_server_nor_stops_its_owner(home: RehearsalHome) -> None:
    pid = ensure_region(home)["pid"]
    with contextlib.ExitStack() as flood:
        for _ in range(FLOOD):
            flood.enter_context(_connected(home))
        with RegionClient(home) as client:
            assert client.ask("list", {})["resources"] == []
        assert AwsClients.at(access_of(home), region="us-west-2").account() == "000000000000"
        wait_until(
            lambda: len(os.listdir(f"/proc/{pid}/fd")) <= LIMIT + OTHERS, what="idle connections end", timeout_s=60
        )
        assert len(os.listdir(f"/proc/{pid}/task")) <= LIMIT + OTHERS
    wait_until(lambda: len(os.listdir(f"/proc/{pid}/task")) < OTHERS, what="their threads end", timeout_s=60)


def test_a_connection_that_never_finishes_its_request_is_closed(home: RehearsalHome) -> None:
    with _connected(home) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a")
        assert connection.recv(1) == b""


def test_the_region_of_an_older_clusterctl_is_refused_with_what_ends_it_and_that_ends_it(
    home: RehearsalHome, own_home: Path
) -> None:
    row = ensure_region(home)
    older = {key: value for key, value in row.items() if key != "checks_signatures"}
    home.endpoint_file.write_text(json.dumps(older))
    with pytest.raises(RegionUnreachable, match="the running region was started by an older clusterctl") as refused:
        ensure_region(home)
    assert refused.value.hint == "clusterctl rehearse clean --all"
    with pytest.raises(RehearsalError, match="the running region was started by an older clusterctl") as failed:
        region_access(Home(path=own_home), dict(os.environ))
    assert failed.value.hint == "clusterctl rehearse clean --all"
    assert main(["clean", "--all"]) == 0
    assert running_region(home) is None
    assert ensure_region(home)["pid"] != row["pid"]


def test_a_region_that_does_not_answer_any_more_is_ended_by_clean(home: RehearsalHome) -> None:
    pid = ensure_region(home)["pid"]
    os.kill(pid, signal.SIGSTOP)
    home.endpoint_file.unlink()
    assert main(["clean", "--all"]) == 0
    wait_until(lambda: not _runs(pid), what="the stopped server is gone", timeout_s=20)


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False
