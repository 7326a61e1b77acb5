"""A state machine's calls of EC2: by botocore to the region's own API, with botocore's checks and words."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any  # EC2's answers

from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.session import Session
from clusterctl_infra.region_keys import KeyPair

from clusterctl_rehearsal.states.failure import RUNTIME, ExecutionFailed, TaskFailed
from clusterctl_rehearsal.states.interpreter import Call

TIMEOUT_S = 30.0


def region_calls(endpoint_url: str, region: str, keys: KeyPair) -> Call:
    """The function that calls EC2 of the region at `endpoint_url`."""
    config = Config(
        connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S, retries={"total_max_attempts": 1}, proxies={}
    )  # the definition has its own retriers
    client = Session().create_client(
        "ec2",
        region_name=region,
        endpoint_url=endpoint_url,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        config=config,
    )
    return lambda action, parameters: answer(lambda: getattr(client, xform_name(action))(**parameters))


def answer(ask: Callable[[], Any]) -> Any:
    """The answer as a state sees it, plain JSON. Raises TaskFailed, ExecutionFailed as Step Functions names them."""
    try:
        found = ask()
    except ClientError as e:
        row, meta = e.response.get("Error", {}), e.response.get("ResponseMetadata", {})
        said = f"(Service: Ec2, Status Code: {meta.get('HTTPStatusCode')}, Request ID: {meta.get('RequestId')})"
        # EC2's model has no exceptions of its own, so that every refusal has this name.
        raise TaskFailed("Ec2.Ec2Exception", f"{row.get('Message')} {said}") from e
    except (ConnectionError, HTTPClientError) as e:
        raise TaskFailed("Ec2.SdkClientException", str(e)) from e
    except BotoCoreError as e:  # a parameter that EC2 does not have
        raise ExecutionFailed(RUNTIME, str(e)) from e
    found.pop("ResponseMetadata", None)
    return json.loads(json.dumps(found, default=_plain))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
