"""What no client of AWS's own would send: refused in the words of the service, and nothing of it is done."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any  # parameters of a call
from xml.etree import ElementTree

import pytest
from clusterctl_rehearsal.api.front import Api, Reply
from clusterctl_rehearsal.region.types.network import VPC

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import REGION, SmallRegion

BUCKET = "shards"
HERE = {"LocationConstraint": REGION}
DIGEST = base64.b64encode(hashlib.md5(b"another", usedforsecurity=False).digest()).decode()
NOT_A_KEY = "<CreateBucketConfiguration><LocationConstraint>"


@pytest.fixture
def api(world: SmallRegion) -> Api:
    return Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets)


@pytest.fixture
def client(world: SmallRegion) -> Client:
    (world.buckets / BUCKET / "train").mkdir(parents=True)
    for number in range(3):
        (world.buckets / BUCKET / "train" / f"{number}.bin").write_bytes(b"0123456789")
    return Client(world)


def raw(
    api: Api,
    path: str,
    service: str = "s3",
    *,
    method: str = "GET",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    region: str = REGION,
) -> Reply:
    """The answer to a request as it is on the wire."""
    scope = f"AWS4-HMAC-SHA256 Credential=x/20260101/{region}/{service}/aws4_request"
    return api.answer({"Authorization": scope, **(headers or {})}, body, method=method, path=path)


def status_and_code(reply: Reply) -> tuple[int, str]:
    """The status and the code of a refusal in XML."""
    code = ElementTree.fromstring(reply.body).find(".//Code")
    return reply.status, "" if code is None or code.text is None else code.text


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"MaxKeys": "many"}, "Provided max-keys not an integer or within integer range"),
        ({"MaxKeys": "1.5"}, "Provided max-keys not an integer or within integer range"),
        ({"MaxKeys": "9" * 5000}, "Provided max-keys not an integer or within integer range"),
        ({"MaxKeys": "²"}, "Provided max-keys not an integer or within integer range"),
        ({"MaxKeys": -1}, "Argument maxKeys must be an integer between 0 and 2147483647"),
        ({"MaxKeys": 2**31}, "Argument maxKeys must be an integer between 0 and 2147483647"),
        ({"ContinuationToken": ""}, "The continuation token provided is incorrect"),
        ({"ContinuationToken": "train/0.bin"}, "The continuation token provided is incorrect"),
        ({"ContinuationToken": "//79"}, "The continuation token provided is incorrect"),
        ({"EncodingType": "base64"}, "Invalid Encoding Method specified in Request"),
    ],
)
def test_a_listing_refuses_what_is_no_number_and_no_token(
    client: Client, api: Api, asked: dict[str, Any], message: str
) -> None:
    if not isinstance(asked.get("MaxKeys"), str):  # which boto3 does not write down
        assert client.call("s3", "ListObjectsV2", Bucket=BUCKET, **asked) == "InvalidArgument"
    names = {"MaxKeys": "max-keys", "ContinuationToken": "continuation-token", "EncodingType": "encoding-type"}
    ((name, value),) = asked.items()
    reply = raw(api, f"/{BUCKET}?list-type=2&{names[name]}={value}")
    root = ElementTree.fromstring(reply.body)
    assert (reply.status, root.findtext("Code"), root.findtext("Message")) == (400, "InvalidArgument", message)
    assert root.findtext("ArgumentValue") == str(value)
    assert str(root.findtext("ArgumentName")).replace("maxKeys", "max-keys") == names[name]


def test_a_page_of_no_key_is_the_last_one(client: Client) -> None:
    """Whoever asks for pages until there is no other would ask for ever."""
    page = client.call("s3", "ListObjectsV2", Bucket=BUCKET, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"]) == (0, False)


def test_a_listing_by_folders_has_each_once_on_whatever_page(client: Client) -> None:
    client.call("s3", "PutObject", Bucket=BUCKET, Key="zeta", Body=b"")
    client.call("s3", "PutObject", Bucket=BUCKET, Key="a\nb <&>", Body=b"")
    first = client.call("s3", "ListObjectsV2", Bucket=BUCKET, Delimiter="/", MaxKeys=2, EncodingType="url")
    rest = client.call(
        "s3", "ListObjectsV2", Bucket=BUCKET, Delimiter="/", ContinuationToken=first["NextContinuationToken"]
    )
    assert [row["Key"] for row in first["Contents"]] == ["a%0Ab%20%3C%26%3E"]
    assert first["CommonPrefixes"] == [{"Prefix": "train/"}]
    assert ([row["Key"] for row in rest["Contents"]], "CommonPrefixes" in rest) == (["zeta"], False)
    inside = client.call("s3", "ListObjectsV2", Bucket=BUCKET, Delimiter="/", Prefix="train/", StartAfter="train/0.bin")
    assert [row["Key"] for row in inside["Contents"]] == ["train/1.bin", "train/2.bin"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, "IllegalLocationConstraintException"),
        ({"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}, "IllegalLocationConstraintException"),
        ({"CreateBucketConfiguration": HERE, "region": "us-east-1"}, None),
        (
            {"CreateBucketConfiguration": {"LocationConstraint": "us-east-1"}, "region": "us-east-1"},
            "InvalidLocationConstraint",
        ),
    ],
)
def test_a_bucket_is_made_where_its_body_says(client: Client, asked: dict[str, Any], code: str | None) -> None:
    answer = client.call("s3", "CreateBucket", Bucket="new-data", **asked)
    assert answer == code if code is not None else answer["Location"] == "/new-data"


@pytest.mark.parametrize("body", [NOT_A_KEY.encode(), b"<Other/>", b"{}", b"\xff\xfe", b"<!DOCTYPE x"])
def test_a_body_that_is_no_xml_of_s3_makes_no_bucket(api: Api, world: SmallRegion, body: bytes) -> None:
    assert status_and_code(raw(api, "/new-data", method="PUT", body=body)) == (400, "MalformedXML")
    assert not (world.buckets / "new-data").exists()


@pytest.mark.parametrize(
    ("method", "path", "headers", "answer"),
    [
        ("PUT", "/shards/train/0.bin?partNumber=1&uploadId=x", {}, (501, "NotImplemented")),
        ("PUT", "/shards/train/0.bin?tagging", {}, (501, "NotImplemented")),
        ("PUT", "/shards/train/0.bin", {"x-amz-copy-source": "/shards/train/1.bin"}, (501, "NotImplemented")),
        ("PUT", "/shards/train/0.bin", {"Content-MD5": DIGEST}, (400, "BadDigest")),
        ("PUT", "/shards/train/0.bin", {"Content-MD5": "no digest"}, (400, "InvalidDigest")),
        ("PUT", "/shards/train/0.bin", {"If-None-Match": "*"}, (412, "PreconditionFailed")),
        ("PUT", "/shards/train/0.bin", {"If-Match": '"another"'}, (412, "PreconditionFailed")),
        ("DELETE", "/shards/train/0.bin?tagging", {}, (501, "NotImplemented")),
        ("DELETE", "/shards?policy", {}, (501, "NotImplemented")),
        ("PUT", "/shards/train", {}, (501, "NotImplemented")),
        ("PUT", "/shards/train/0.bin/below", {}, (501, "NotImplemented")),
        ("PUT", "/shards/a%00b", {}, (501, "NotImplemented")),
        ("PUT", f"/shards/{'a' * 256}", {}, (501, "NotImplemented")),
        ("PUT", f"/shards/{'a/' * 512}a", {}, (400, "KeyTooLongError")),
        ("PUT", "/", {}, (405, "MethodNotAllowed")),
        ("GET", "/shards?versions", {}, (501, "NotImplemented")),
        ("GET", "/shards/train/0.bin", {"Range": "bytes=10-"}, (416, "InvalidRange")),
        ("GET", "/shards/train/0.bin/below", {}, (404, "NoSuchKey")),
        ("GET", "/shards/a%00b", {}, (501, "NotImplemented")),
    ],
)
@pytest.mark.usefixtures("client")
def test_what_s3_refuses_or_only_s3_can_changes_no_object(
    api: Api, world: SmallRegion, method: str, path: str, headers: dict[str, str], answer: tuple[int, str]
) -> None:
    assert status_and_code(raw(api, path, method=method, headers=headers, body=b"other")) == answer
    kept = {str(path.relative_to(world.buckets)): path.read_bytes() for path in world.buckets.rglob("*.bin")}
    assert kept == {f"shards/train/{number}.bin": b"0123456789" for number in range(3)}


def test_a_folder_of_keys_is_no_object_that_could_be_deleted(client: Client, world: SmallRegion) -> None:
    client.call("s3", "DeleteObject", Bucket=BUCKET, Key="train")
    assert len(list((world.buckets / BUCKET / "train").iterdir())) == 3


@pytest.mark.parametrize(
    ("wanted", "status", "body", "where"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=8-", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=4-2", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
    ],
)
@pytest.mark.usefixtures("client")
def test_a_part_of_an_object_is_that_part(api: Api, wanted: str, status: int, body: bytes, where: str | None) -> None:
    """boto3 takes a large object in parts, and writes what it is given where the part belongs."""
    reply = raw(api, f"/{BUCKET}/train/0.bin", headers={"Range": wanted})
    named = dict(reply.headers)
    assert (reply.status, reply.body, named.get("Content-Range")) == (status, body, where)
    assert named["Content-Length"] == str(len(body))


def test_an_object_that_one_has_already_is_not_sent_again(client: Client, api: Api) -> None:
    etag = client.call("s3", "HeadObject", Bucket=BUCKET, Key="train/0.bin")["ETag"]
    reply = raw(api, f"/{BUCKET}/train/0.bin", headers={"If-None-Match": etag})
    assert (reply.status, reply.body) == (304, b"")
    assert raw(api, f"/{BUCKET}/train/0.bin", headers={"If-Match": etag}).status == 200


@pytest.mark.parametrize(
    ("service", "body", "answer"),
    [
        ("ec2", b"Action=DescribeInstances&MaxResults=many", (400, "InvalidParameterValue")),
        ("ec2", b"Action=DescribeInstances&NextToken=LTU%3D", (400, "InvalidParameterValue")),
        ("ec2", b"Action=DeleteSubnet", (400, "MissingParameter")),
        ("ec2", b"\xff\xfe", (404, "MalformedQueryString")),
        ("iam", b"Action=ListRoles&MaxItems=many", (400, "ValidationError")),
        ("iam", "Action=ListRoles&Marker=²".encode(), (400, "InvalidInput")),
        ("iam", b"Action=CreateRole", (400, "ValidationError")),
    ],
)
def test_a_form_is_refused_in_the_words_of_its_service(
    api: Api, service: str, body: bytes, answer: tuple[int, str]
) -> None:
    assert status_and_code(raw(api, "/", service, method="POST", body=body)) == answer


@pytest.mark.parametrize(
    ("service", "operation", "body", "code"),
    [
        ("states", "ListExecutions", b"no json", "SerializationException"),
        ("states", "ListExecutions", b"[]", "SerializationException"),
        ("states", "ListExecutions", b"\xff", "SerializationException"),
        ("states", "ListExecutions", b'{"stateMachineArn": "x", "maxResults": "many"}', "ValidationException"),
        ("states", "ListExecutions", b'{"stateMachineArn": "x", "maxResults": -1}', "ValidationException"),
        ("ssm", "GetParameter", b"{}", "ValidationException"),
        ("fsx", "DeleteFileSystem", b"{}", "BadRequest"),
    ],
)
def test_a_json_body_is_refused_in_the_words_of_its_service(
    api: Api, service: str, operation: str, body: bytes, code: str
) -> None:
    headers = {"X-Amz-Target": f"AWS.{operation}"}
    reply = raw(api, "/", service, method="POST", body=body, headers=headers)
    assert (reply.status, code in reply.body.decode()) == (400, True), reply.body


def test_a_failure_of_the_region_is_an_answer_and_lies_in_its_log(
    api: Api, world: SmallRegion, capsys: pytest.CaptureFixture[str]
) -> None:
    world.make(VPC, cidrBlock="10.0.0.0/16")
    reply = raw(api, "/", "ec2", method="POST", body=b"Action=DescribeVpcs&Filter.1.Value.1=nameless")
    assert status_and_code(reply) == (500, "InternalFailure")
    assert "KeyError: 'Name'" in capsys.readouterr().err
