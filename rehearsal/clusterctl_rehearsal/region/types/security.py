"""Security groups and their rules, key pairs."""

from __future__ import annotations

import base64
import hashlib

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties
from clusterctl_rehearsal.region.types.network import (
    INSTANCE,
    LUSTRE,
    MOUNT_TARGET,
    NETWORK_INTERFACE,
    SECURITY_GROUP,
    VPC,
    VPC_ENDPOINT,
)
from clusterctl_rehearsal.region.types.row import Request, ResourceType, random_hex

INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
KEY_PAIR = "aws:ec2/keyPair:KeyPair"

_TARGETS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_RULE_KEYS = ("ipProtocol", "fromPort", "toPort", *_TARGETS)


def _check_rule(request: Request) -> None:
    inputs = request.inputs
    if sum(inputs.get(key) is not None for key in _TARGETS) != 1:
        # The provider's own validator, before AWS is asked.
        raise AwsError("InvalidParameterCombination", f"Exactly one of {', '.join(_TARGETS)} must be configured.")
    if str(inputs.get("ipProtocol")) == "-1" and (inputs.get("fromPort") or inputs.get("toPort")):
        raise AwsError(
            "InvalidParameterValue",
            "You may not specify all protocols and specific ports. Please specify each protocol.",
        )


def _check_key(request: Request) -> None:
    kind, _, rest = str(request.inputs.get("publicKey", "")).strip().partition(" ")
    try:
        blob = base64.b64decode(rest.split(" ")[0], validate=True)
    except ValueError:
        blob = b""
    if kind not in ("ssh-ed25519", "ssh-rsa") or kind.encode() not in blob[:20]:
        raise AwsError("InvalidKey.Format", "Key is not in valid OpenSSH public key format")


def _key(request: Request) -> Properties:
    blob = base64.b64decode(request.inputs["publicKey"].split(" ")[1])
    return {
        "arn": request.arn("key-pair"),
        "keyPairId": f"key-{random_hex(17)}",
        "keyType": "ed25519" if request.inputs["publicKey"].startswith("ssh-ed25519") else "rsa",
        "fingerprint": base64.b64encode(hashlib.sha256(blob).digest()).decode(),
    }


def _rule_outputs(request: Request) -> Properties:
    return {"arn": request.arn("security-group-rule"), "securityGroupRuleId": request.id}


def _rule(token: str, label: str, create: str, delete: str, source: str) -> ResourceType:
    return ResourceType(
        token=token,
        label=label,
        prefix="sgr",
        create=create,
        delete=delete,
        not_found="InvalidSecurityGroupRuleId.NotFound",
        source=source,
        replace=("securityGroupId",),
        one_of=_TARGETS,
        part_of="securityGroupId",
        needs={"securityGroupId": SECURITY_GROUP, "referencedSecurityGroupId": SECURITY_GROUP},
        unique=(("securityGroupId", *_RULE_KEYS), "InvalidPermission.Duplicate", "the specified rule already exists"),
        check=_check_rule,
        outputs=_rule_outputs,
    )


SECURITY_TYPES = (
    ResourceType(
        token=SECURITY_GROUP,
        label="Security Group",
        prefix="sg",
        create="CreateSecurityGroup",
        delete="DeleteSecurityGroup",
        not_found="InvalidGroup.NotFound",
        source="internal/service/ec2/vpc_security_group.go",
        replace=("description", "name", "namePrefix", "vpcId"),
        name="name",
        unique=(
            ("vpcId", "name"),
            "InvalidGroup.Duplicate",
            "The security group '{name}' already exists for VPC '{vpcId}'",
        ),
        defaults={"description": "Managed by Pulumi", "revokeRulesOnDelete": False},
        needs={"vpcId": VPC},
        blocked_by=(INSTANCE, NETWORK_INTERFACE, VPC_ENDPOINT, LUSTRE, MOUNT_TARGET, INGRESS_RULE, EGRESS_RULE),
        blocked=("DependencyViolation", "resource {id} has a dependent object"),
        outputs=lambda request: {"arn": request.arn("security-group"), "ownerId": ACCOUNT_ID},
    ),
    _rule(
        INGRESS_RULE,
        "VPC Security Group Ingress Rule",
        "AuthorizeSecurityGroupIngress",
        "RevokeSecurityGroupIngress",
        "internal/service/ec2/vpc_security_group_ingress_rule.go",
    ),
    _rule(
        EGRESS_RULE,
        "VPC Security Group Egress Rule",
        "AuthorizeSecurityGroupEgress",
        "RevokeSecurityGroupEgress",
        "internal/service/ec2/vpc_security_group_egress_rule.go",
    ),
    ResourceType(
        token=KEY_PAIR,
        label="EC2 Key Pair",
        create="ImportKeyPair",
        delete="DeleteKeyPair",
        not_found="InvalidKeyPair.NotFound",
        source="internal/service/ec2/ec2_key_pair.go",
        replace=("keyName", "keyNamePrefix", "publicKey"),
        name="keyName",
        unique=(("keyName",), "InvalidKeyPair.Duplicate", "The keypair already exists"),
        check=_check_key,
        outputs=_key,
    ),
)
