"""The types of single values in cluster.yaml: each turns a person's text into a Python value.

A validator raises ValueError with a sentence that follows "path: value: "; problems.py adds both.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeVar

from clusterctl_bootstrap.environment_meaning import fault_of_own
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from clusterctl_infra.config import quantities
from clusterctl_infra.config.ssh_keys import check_public_key

T = TypeVar("T")
NAME_LENGTH = 40
"""Leaves room in a 63-character host name and in IAM's 64 characters for what clusterctl appends."""
NODES_LIMIT = 1000
TAGS_LIMIT = 40
TAG_LETTER = r"[\w +\-=._:/@]"
"""A character of a tag's value. EC2 takes others too; IAM, FSx and EFS do not (their API models in botocore 1.44;
2026-11-22)."""
KMS_EXAMPLE = "arn:aws:kms:us-west-2:123456789012:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
LEAST_ROOT_DISK_GIB, LARGEST_DISK_GIB = 8, 65_536
"""The size of the smallest usual image; the largest gp3 volume since September 2025 (AWS re:Invent 2025, session
STG320; looked up 2026-11-27)."""


def check_name(value: object) -> str:
    """A host name label that AWS takes too. Raises ValueError."""
    text = check_text(value)
    if not text:
        raise ValueError("empty; write a name such as train")
    if len(text) > NAME_LENGTH:
        raise ValueError(f"{len(text)} characters; the most is {NAME_LENGTH}")
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", text, re.ASCII):
        wish = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        better = f" (did you mean {wish}?)" if wish and wish != text else ""
        raise ValueError(f"lower-case letters, digits and inner hyphens only{better}")
    if text.startswith(("sg-", "xn--")):
        raise ValueError("AWS and DNS keep names that begin with sg- or xn-- for themselves")
    return text


def check_nodes(value: object) -> int:
    """A number of nodes, from 1 to NODES_LIMIT. Raises ValueError."""
    count = check_whole(value)
    if count < 1:
        raise ValueError("a cluster has at least 1 node; to end one: clusterctl down")
    if count > NODES_LIMIT:
        raise ValueError(f"at most {NODES_LIMIT} nodes")
    return count


def check_text(value: object) -> str:
    """One line of text. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("not a single value")
    if any(ord(character) < 32 for character in value):
        raise ValueError("holds a line break or control character")
    return value


def check_form(value: object, pattern: str, message: str) -> str:
    """One line of text, without blanks around it, that matches `pattern`. Raises ValueError with `message`."""
    text = check_text(value).strip()
    if not re.fullmatch(pattern, text, re.ASCII):
        raise ValueError(message)
    return text


def check_duration(value: object) -> timedelta:
    """A duration, such as 90m or 12h. Raises ValueError."""
    if isinstance(value, timedelta):
        return quantities.check_duration(value)
    return quantities.parse_duration(check_text(value))


def check_dollars(value: object) -> float:
    """US dollars. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return quantities.check_dollars(float(value))
    return quantities.parse_dollars(check_text(value))


def check_node_price(value: object) -> float:
    """Dollars per hour of one machine. Raises ValueError."""
    return quantities.check_hourly_dollars(check_dollars(value), quantities.DEAREST_NODE_USD_PER_HOUR)


def check_cluster_price(value: object) -> float:
    """Dollars per hour of a whole cluster. Raises ValueError."""
    return quantities.check_hourly_dollars(check_dollars(value), quantities.DEAREST_CLUSTER_USD_PER_HOUR)


def check_root_disk(value: object) -> int:
    """The size of a gp3 disk that a machine can start from, in GiB. Raises ValueError."""
    size_gib = check_size(value)
    if not LEAST_ROOT_DISK_GIB <= size_gib <= LARGEST_DISK_GIB:
        raise ValueError(f"a root disk has between {LEAST_ROOT_DISK_GIB}GiB and {LARGEST_DISK_GIB}GiB")
    return size_gib


def check_size(value: object) -> int:
    """A size in GiB. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return quantities.parse_size_gib(check_text(value))


def check_policy_arn(value: object) -> str:
    """The ARN of an IAM policy. Raises ValueError."""
    pattern = r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]{1,512}"
    return check_form(
        value, pattern, "not the ARN of a policy; one looks like arn:aws:iam::123456789012:policy/engineers"
    )


def check_kms_key(value: object) -> str:
    """The ARN of a key. Raises ValueError, also for an alias: AWS would answer with its key, and the engine would see a
    change.
    """
    pattern = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})"
    return check_form(value, pattern, f"not the ARN of a KMS key; one looks like {KMS_EXAMPLE}")


def check_reservation_id(value: object) -> str:
    """The id of a capacity reservation; a capacity block is one, too. Raises ValueError."""
    return _aws_id(value, "cr", "a capacity reservation")


def check_vpc_id(value: object) -> str:
    """The id of a VPC. Raises ValueError."""
    return _aws_id(value, "vpc", "a VPC")


def check_subnet_id(value: object) -> str:
    """The id of a subnet. Raises ValueError."""
    return _aws_id(value, "subnet", "a subnet")


def check_positive(value: object) -> int:
    """A whole number above 0. Raises ValueError."""
    count = check_whole(value)
    if count < 1:
        raise ValueError("a whole number above 0")
    return count


def check_switch(value: object) -> bool:
    """true or false. Raises ValueError."""
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    text = check_text(value).lower()
    if text not in words:
        raise ValueError("write true or false")
    return words[text]


def check_cidr(value: object) -> str:
    """An IPv4 network. Raises ValueError."""
    text = check_text(value).strip()
    if ":" in text and _is_ipv6(text):
        raise ValueError("IPv6 is not used; write an IPv4 network such as 203.0.113.7/32")
    try:
        interface = ipaddress.IPv4Interface(text)
    except ValueError as e:
        raise ValueError("not an IPv4 network such as 203.0.113.7/32") from e
    if "/" not in text:
        raise ValueError(f"an address without its prefix length (did you mean {text}/32?)")
    if not re.fullmatch(r"[0-9.]+/\d{1,2}", text, re.ASCII):
        raise ValueError(f"write the prefix length as a number (did you mean {interface.network}?)")
    if interface.ip != interface.network.network_address:
        raise ValueError(f"an address inside a network (did you mean {interface.network}?)")
    return text


def check_bastion(value: object) -> str:
    """`HOST` or `USER@HOST`, as ssh takes it. Raises ValueError."""
    pattern = r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*"
    message = "write a host such as ada@bastion.example.com; its port and key go into your ~/.ssh/config"
    return check_form(value, pattern, message)


def check_env(value: object) -> dict[str, str]:
    """Environment variables. Raises ValueError that names each one that nodes cannot set."""
    return _checked_texts(value, _env_fault)


def check_tags(value: object) -> dict[str, str]:
    """AWS tags. Raises ValueError that names those that a service of AWS, or the metadata service, would refuse."""
    found = _checked_texts(value, _tag_fault)
    # IAM takes no two keys that differ in case alone, and `Name` is on everything (IAM API, TagRole; 2026-11-22).
    first = {"name": "Name"}
    for name in found:
        if first.setdefault(name.lower(), name) != name:
            raise ValueError(f"{name}: AWS takes it for the same key as {first[name.lower()]}; choose another")
    if len(found) > TAGS_LIMIT:
        raise ValueError(f"{len(found)} tags; AWS takes 50, of which clusterctl keeps {50 - TAGS_LIMIT} for itself")
    return found


def check_owner(value: object) -> str:
    """Whom to ask about a cluster, in characters that a tag may have. Raises ValueError."""
    text = check_text(value)
    if not re.fullmatch(TAG_LETTER + "{1,256}", text):
        raise ValueError("it is a tag's value: 1 to 256 letters, digits, blanks or + - = . _ : / @")
    return text


def _aws_id(value: object, prefix: str, what: str) -> str:
    message = f"not the id of {what}; one looks like {prefix}-0a1b2c3d4e5f67890"
    return check_form(value, rf"{prefix}-[0-9a-f]{{8,17}}", message)


def _env_fault(name: str, text: str) -> str | None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        return "not the name of an environment variable"
    if "\n" in text:
        return "holds a newline, which SSH sessions and containers cannot be given"
    return "holds a NUL character" if "\0" in text else fault_of_own(name, text)


def _tag_fault(name: str, text: str) -> str | None:
    if not re.fullmatch(r"[A-Za-z0-9+=._:@-]{1,128}", name, re.ASCII):
        return "a tag's key is 1 to 128 letters, digits or + - = . _ : @"
    if name.lower().startswith(("aws:", "clusterctl:")):
        return "keys that begin with aws: or clusterctl: are taken"
    if not re.fullmatch(TAG_LETTER + "{0,256}", text):
        return "a tag's value is at most 256 letters, digits, blanks or + - = . _ : / @"
    return None


def check_whole(value: object) -> int:
    """A whole number. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return quantities.parse_whole(check_text(value))


def _checked_texts(value: object, fault: Callable[[str, str], str | None]) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("not a mapping of names to values")
    faults = {name: _text_fault(text) or fault(str(name), str(text)) for name, text in value.items()}
    sentences = [f"{name}: {sentence}" for name, sentence in faults.items() if sentence is not None]
    if sentences:
        raise ValueError("; ".join(sentences))
    return {str(name): str(text) for name, text in value.items()}


def _text_fault(text: object) -> str | None:
    if text is None:
        return "empty; write '' for an empty text"
    return None if isinstance(text, str) else "not a single value"


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Interface(text)
    except ValueError:
        return False
    return True


def _schema(kind: str, *examples: object, **more: object) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, "examples": list(examples), **more})


def _text_or_number(pattern: str, *examples: object) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "examples": list(examples)})


def _read(check: Callable[[object], T]) -> BeforeValidator:
    return BeforeValidator(check)


_DURATION_TEXT = PlainSerializer(quantities.format_duration, return_type=str)
Name = Annotated[str, _read(check_name), _text_or_number("[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", "train")]
Text = Annotated[str, _read(check_text)]
NodeCount = Annotated[int, _read(check_nodes), _schema("integer", 4, minimum=1, maximum=NODES_LIMIT)]
Duration = Annotated[
    timedelta,
    _read(check_duration),
    _DURATION_TEXT,
    _text_or_number(r"(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?", "12h", "90m", "2d"),
]
Dollars = Annotated[float, _read(check_dollars), _schema("number", 60, 2.5, exclusiveMinimum=0)]
NodePrice = Annotated[
    float,
    _read(check_node_price),
    _schema("number", 60, 2.5, exclusiveMinimum=0, maximum=quantities.DEAREST_NODE_USD_PER_HOUR),
]
ClusterPrice = Annotated[
    float,
    _read(check_cluster_price),
    _schema("number", 250, 2.5, exclusiveMinimum=0, maximum=quantities.DEAREST_CLUSTER_USD_PER_HOUR),
]
SizeGib = Annotated[
    int,
    _read(check_size),
    PlainSerializer(quantities.format_size, return_type=str),
    _text_or_number(r"\d+(\.\d+)?(GiB|TiB)", "1200GiB", "4.8TiB"),
]
RootDiskGib = Annotated[
    int,
    _read(check_root_disk),
    PlainSerializer(quantities.format_size, return_type=str),
    _text_or_number(r"\d+(\.\d+)?(GiB|TiB)", "200GiB", "1TiB"),
]
Switch = Annotated[bool, _read(check_switch)]
Cidr = Annotated[str, _read(check_cidr), _text_or_number(r"\d+\.\d+\.\d+\.\d+/\d+", "203.0.113.7/32")]
Bastion = Annotated[str, _read(check_bastion), _text_or_number(r"([^@\s]+@)?[^@:\s]+", "ada@bastion.example.com")]
PublicKey = Annotated[
    str,
    _read(check_public_key),
    _text_or_number(r"(ssh-|ecdsa-|sk-).+", "ssh-ed25519 AAAA… you@laptop"),
]
_TEXTS = WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
Env = Annotated[dict[str, str], _read(check_env), _TEXTS]
KmsKeyArn = Annotated[str, BeforeValidator(check_kms_key), WithJsonSchema({"type": "string"})]
PolicyArn = Annotated[str, BeforeValidator(check_policy_arn), WithJsonSchema({"type": "string"})]
ReservationId = Annotated[
    str, BeforeValidator(check_reservation_id), WithJsonSchema({"type": "string", "pattern": "^cr-[0-9a-f]{8,17}$"})
]
VpcId = Annotated[
    str, BeforeValidator(check_vpc_id), WithJsonSchema({"type": "string", "pattern": "^vpc-[0-9a-f]{8,17}$"})
]
SubnetId = Annotated[
    str, BeforeValidator(check_subnet_id), WithJsonSchema({"type": "string", "pattern": "^subnet-[0-9a-f]{8,17}$"})
]
Owner = Annotated[str, _read(check_owner)]
Tags = Annotated[dict[str, str], _read(check_tags), _TEXTS]
