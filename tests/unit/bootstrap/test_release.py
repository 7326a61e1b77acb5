"""How a node asks AWS, by nothing but the standard library, to end its cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from clusterctl_bootstrap.node import release
from clusterctl_bootstrap.node.release import ATTEMPTS, PAUSE_S, signed_headers, start_ending
from clusterctl_infra.names import guard_name
from clusterctl_infra.plan import ending_machine

BODY = b'{"stateMachineArn": "arn:aws:states:us-west-2:123456789012:stateMachine:x"}'
HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AWSStepFunctions.StartExecution"}
KEY = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "wJalr+XUtnFEMI/K7MDENG", "Token": "IQoJb3JpZ2luX2Vj//=="}
NOW = datetime(2026, 11, 21, 16, 52, 7, tzinfo=UTC)


@pytest.mark.parametrize("region", ["us-west-2", "cn-north-1"])
def test_a_request_is_signed_as_botocore_signs_it(region: str) -> None:
    host = f"states.{region}.amazonaws.com"
    ours = signed_headers(host, region, HEADERS, BODY, KEY, NOW)
    headers = {name: value for name, value in ours.items() if name != "Authorization"}
    request = AWSRequest("POST", f"https://{host}/", data=BODY, headers=headers)
    request.context["timestamp"] = "20261121T165207Z"
    keys = Credentials(KEY["AccessKeyId"], KEY["SecretAccessKey"], KEY["Token"])
    theirs = SigV4Auth(keys, "states", region)
    signature = theirs.signature(theirs.string_to_sign(request, theirs.canonical_request(request)), request)
    assert ours["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE/20261121/{region}/states/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, "
        f"Signature={signature}"
    )


def test_a_node_calls_the_state_machine_and_its_wait_as_the_plan_does() -> None:
    assert guard_name("0123456789ab") == release.MACHINE % "0123456789ab"
    assert (release.WAIT_KEY, release.IF_GONE_KEY) == (ending_machine.WAIT_KEY, ending_machine.IF_GONE_KEY)


def unreachable(*handlers: object) -> NoReturn:
    raise OSError("no route to host")


def test_where_aws_is_not_reached_it_is_tried_again_and_then_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib.request.build_opener", unreachable)
    pauses: list[float] = []
    message = start_ending(tmp_path, {"cluster_id": "0123456789ab"}, "idle", NOW, 20, pauses.append)
    assert message == "AWS was not told, so a reservation bills until the deadline: OSError: no route to host"
    assert pauses == [PAUSE_S] * (ATTEMPTS - 1)
