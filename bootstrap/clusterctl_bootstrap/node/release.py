"""What ends a cluster as a whole before its deadline: the state machine that the deadline would start.

A machine that ends by itself leaves its reservation, which bills empty. The nodes' role may start this one state
machine and nothing else; where it may not, or AWS is not reached, the nodes end all the same.
"""

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

METADATA = "http://169.254.169.254/latest/"
TIMEOUT_S = 10
MACHINE, WAIT_KEY, IF_GONE_KEY = "clusterctl-%s-deadline", "WaitSeconds", "IfSlot0IsGone"
"""The plan's names for them; no node can import the plan, and a test compares both."""
STAMP = "-%Y-%m-%dT%H-%M-%SZ"
ATTEMPTS = 3
PAUSE_S = 3.0
SIMULATED = "etc/clusterctl-rehearsal/aws-endpoint"
"""The file that says in a rehearsal where the stand-in for AWS answers."""


def start_ending(
    root: Path,
    known: Dict[str, Any],
    why: str,
    since: datetime,
    wait_s: int,
    sleep: Callable[[float], None],
    if_slot_0_is_gone: bool = False,
) -> str:
    """Starts the state machine and returns what came of it, for the log; never raises.

    `why` (one word) and `since` name the execution: so others know why it began, and a second try is harmless. It ends
    nothing for `wait_s` and, with `if_slot_0_is_gone`, nothing after that while slot 0 has a machine.
    """
    outcome, only = "", " if slot 0's machine is gone by then" if if_slot_0_is_gone else ""
    given = dict({WAIT_KEY: wait_s}, **({IF_GONE_KEY: True} if if_slot_0_is_gone else {}))
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(PAUSE_S)
        try:
            name = since.strftime(why + STAMP)
            return "AWS ends what is left in %d s%s: %s" % (wait_s, only, _start(root, known, name, given))
        except Exception as e:  # noqa: BLE001  # whatever it was, this node ends
            outcome = "AWS was not told, so a reservation bills until the deadline: %s: %s" % (type(e).__name__, e)
    return outcome


def _start(root: Path, known: Dict[str, Any], name: str, given: Dict[str, Any]) -> str:
    place = json.loads(metadata("dynamic/instance-identity/document"))
    role = metadata("meta-data/iam/security-credentials/").split()[0]
    credentials = json.loads(metadata("meta-data/iam/security-credentials/" + role))
    partition, domain = metadata("meta-data/services/partition"), metadata("meta-data/services/domain")
    host = "states.%s.%s" % (place["region"], domain)
    machine = "arn:%s:states:%s:%s:stateMachine:" + MACHINE
    body = json.dumps(
        {
            "stateMachineArn": machine % (partition, place["region"], place["accountId"], known["cluster_id"]),
            "name": name,
            "input": json.dumps(given),
        }
    ).encode()
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AWSStepFunctions.StartExecution"}
    signed = signed_headers(host, place["region"], headers, body, credentials, datetime.now(timezone.utc))
    simulated = root / SIMULATED
    url = simulated.read_text().strip() if simulated.exists() else "https://%s/" % host
    return str(json.loads(_ask(url, signed, body))["executionArn"])


def metadata(page: str) -> str:
    """A page of the metadata service, which answers root alone. Raises OSError."""
    token = _ask(METADATA + "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, None, "PUT")
    return _ask(METADATA + page, {"X-aws-ec2-metadata-token": token})


def signed_headers(
    host: str, region: str, headers: Dict[str, str], body: bytes, credentials: Dict[str, str], now: datetime
) -> Dict[str, str]:
    """The headers of a POST to Step Functions, with AWS's signature of version 4 (IAM user guide, "Create a signed
    AWS API request"; 2026-11-21)."""
    stamp, scope = now.strftime("%Y%m%dT%H%M%SZ"), (now.strftime("%Y%m%d"), region, "states", "aws4_request")
    known = dict(headers, Host=host, **{"X-Amz-Date": stamp, "X-Amz-Security-Token": credentials["Token"]})
    lines, names = _canonical(known)
    request = "\n".join(["POST", "/", "", lines, names, hashlib.sha256(body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + credentials["SecretAccessKey"]).encode()
    for part in scope:
        key = hmac.new(key, part.encode(), "sha256").digest()
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    by = "%s/%s" % (credentials["AccessKeyId"], "/".join(scope))
    authorization = "AWS4-HMAC-SHA256 Credential=%s, SignedHeaders=%s, Signature=%s" % (by, names, signature)
    return dict(known, Authorization=authorization)


def _canonical(headers: Dict[str, str]) -> Tuple[str, str]:
    """The headers' lines, sorted, and their names."""
    low = sorted((name.lower(), value.strip()) for name, value in headers.items())
    return "".join("%s:%s\n" % row for row in low), ";".join(name for name, _ in low)


def _ask(url: str, headers: Dict[str, str], body: Any = None, method: str = "") -> str:
    request = urllib.request.Request(url, body, headers, method=method or None)
    # Not through a proxy that the environment names: the metadata service is on this machine's own link.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as e:  # AWS's reason is in the body
        raise OSError("%s: %d: %s" % (url, e.code, e.read()[:300].decode("utf-8", "replace"))) from e
