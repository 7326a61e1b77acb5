"""What the account has before any cluster: networks and reservations that rehearsal.yaml names, as records.

No stack makes or ends them, and the bill leaves them out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any  # YAML values, and property values

from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties, Record
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.row import random_hex

EXISTING = "existing"
"""The fact that marks a record as named by rehearsal.yaml."""
NETWORK_KEYS = frozenset(
    [
        *("vpc_id", "vpc_cidr", "subnet_id", "subnet_cidr", "zone", "way_out", "taken", "dns"),
        *("service_subnet_id", "service_subnet_cidr"),
    ]
)
RESERVATION_KEYS = frozenset(
    [
        "id",
        "instance_type",
        "zone",
        "places",
        "begins_in_s",
        "ends_in_s",
        "is_block",
        "match",
        "placement_group",
        "state",
    ]
)
WAYS_OUT = ("gateway", "nat", "none")


def existing_problem(value: Any) -> str | None:
    """What is wrong with the setting; None: nothing."""
    if not isinstance(value, Mapping) or set(value) - {"networks", "reservations"}:
        return "existing: not a mapping with networks and reservations"
    for key, known in (("networks", NETWORK_KEYS), ("reservations", RESERVATION_KEYS)):
        rows = value.get(key, [])
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
            return f"existing.{key}: not a list of mappings"
        for row in rows:
            if unknown := sorted(set(row) - known):
                return f"existing.{key}: {', '.join(unknown)}: unknown (there are {', '.join(sorted(known))})"
            try:
                list(_network(row, 0.0) if key == "networks" else _reservation(row, 0.0))
            except (KeyError, ValueError, TypeError) as e:
                return f"existing.{key}: {type(e).__name__}: {e}"
    return None


def add_existing(store: Store, value: Mapping[str, Any], *, now: float) -> None:
    """Adds the named resources that the store lacks; those that it has stay as they are, ended or not."""
    for row in value.get("networks", []):
        _put_new(store, _network(row, now))
    for row in value.get("reservations", []):
        _put_new(store, _reservation(row, now))


def is_existing(record: Record) -> bool:
    """Whether rehearsal.yaml named the resource, so that no stack made it."""
    return bool(record.facts.get(EXISTING))


def _put_new(store: Store, records: Iterator[Record]) -> None:
    first, *others = records
    if store.get(first.token, first.id) is None:
        for record in (first, *others):
            store.put(record)


def _network(row: Mapping[str, Any], now: float) -> Iterator[Record]:
    """A VPC with a subnet for nodes and maybe one for services, their route table and its default route.

    `taken`: addresses of others' interfaces in the nodes' subnet.
    """
    vpc_id, subnet_id, zone = str(row["vpc_id"]), str(row["subnet_id"]), str(row["zone"])
    subnets, way_out = {subnet_id: row["subnet_cidr"]}, row.get("way_out", "gateway")
    if "service_subnet_id" in row:
        subnets[str(row["service_subnet_id"])] = row["service_subnet_cidr"]
    if way_out not in WAYS_OUT:
        raise ValueError(f"way_out: {way_out!r} is not one of {', '.join(WAYS_OUT)}")
    vpc_cidr, region = str(ipaddress.IPv4Network(row["vpc_cidr"])), zone[:-1]
    table_id = f"rtb-{vpc_id.partition('-')[2]}"

    def record(token: str, id: str, inputs: Properties, outputs: Properties, *refs: str, **facts: Any) -> Record:
        shown = {**outputs, **inputs, "tagsAll": {}}
        return _record(token, id, region, inputs, shown, refs=refs, now=now, **facts)

    yield record(
        network.VPC,
        vpc_id,
        {"cidrBlock": vpc_cidr, "enableDnsSupport": row.get("dns", True)},
        {
            **network.vpc_defaults(),
            "dhcpOptionsId": f"dopt-{random_hex(17)}",
            "instanceTenancy": "default",
        },
    )
    yield record(network.ROUTE_TABLE, table_id, {"vpcId": vpc_id}, {}, vpc_id)
    for id, cidr in subnets.items():
        arn = f"arn:aws:ec2:{region}:{ACCOUNT_ID}:subnet/{id}"
        subnet = {"vpcId": vpc_id, "cidrBlock": str(ipaddress.IPv4Network(cidr)), "availabilityZone": zone}
        outputs = {"arn": arn, "availabilityZoneId": f"{zone}-az", "mapPublicIpOnLaunch": False}
        yield record(network.SUBNET, id, subnet, outputs, vpc_id)
        association = {"routeTableId": table_id, "subnetId": id}
        yield record(network.ROUTE_TABLE_ASSOCIATION, f"rtbassoc-{random_hex(17)}", association, {}, table_id, id)
    if way_out != "none":
        out = f"igw-{random_hex(17)}" if way_out == "gateway" else f"nat-{random_hex(17)}"
        key = "gatewayId" if way_out == "gateway" else "natGatewayId"
        route = {"routeTableId": table_id, "destinationCidrBlock": "0.0.0.0/0", key: out}
        yield record(network.ROUTE, f"r-{random_hex(17)}", route, {}, table_id)
    for address in row.get("taken", []):
        yield _interface(str(ipaddress.IPv4Address(address)), vpc_id, subnet_id, region=region, now=now)


def _interface(ip: str, vpc_id: str, subnet_id: str, *, region: str, now: float) -> Record:
    """The interface of another machine in the account, with this address."""
    id = f"eni-{random_hex(17)}"
    card: Properties = {"id": id, "kind": "interface", "subnet": subnet_id, "groups": [], "ip": ip, "mac": ""}
    outputs: Properties = {"tagsAll": {}}
    return _record(
        network.NETWORK_INTERFACE, id, region, {}, outputs, refs=(subnet_id,), now=now, card=card, ip=ip, vpc=vpc_id
    )


def _reservation(row: Mapping[str, Any], now: float) -> Iterator[Record]:
    """A reservation or a capacity block, whose times count from `now`, and its placement group if it names one."""
    zone, begun = str(row["zone"]), datetime.fromtimestamp(now, UTC)
    starts = begun + timedelta(seconds=int(row.get("begins_in_s", 0)))
    ends = begun + timedelta(seconds=int(row["ends_in_s"])) if "ends_in_s" in row else None
    group = row.get("placement_group")
    group_arn = None if group is None else f"arn:aws:ec2:{zone[:-1]}:{ACCOUNT_ID}:placement-group/{group}"
    inputs = {
        "instanceType": str(row["instance_type"]),
        "availabilityZone": zone,
        "instanceCount": int(row["places"]),
        "instancePlatform": "Linux/UNIX",
        "instanceMatchCriteria": row.get("match", "targeted"),
        "endDateType": "unlimited" if ends is None else "limited",
        "endDate": None if ends is None else ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "placementGroupArn": group_arn,
    }
    id = str(row["id"])
    arn = f"arn:aws:ec2:{zone[:-1]}:{ACCOUNT_ID}:capacity-reservation/{id}"
    state = str(row.get("state", "scheduled" if starts > begun else "active"))
    facts: Properties = {"state": state, "starts_at": starts.timestamp(), "is_block": bool(row.get("is_block", False))}
    yield _record(CAPACITY_RESERVATION, id, zone[:-1], inputs, {**inputs, "arn": arn, "tagsAll": {}}, now=now, **facts)
    if group is not None:
        group_inputs = {"name": group, "strategy": "cluster"}
        shown = {**group_inputs, "arn": group_arn, "placementGroupId": f"pg-{random_hex(17)}", "tagsAll": {}}
        yield _record(PLACEMENT_GROUP, str(group), zone[:-1], group_inputs, shown, now=now)


def _record(
    token: str,
    id: str,
    region: str,
    inputs: Properties,
    outputs: Properties,
    *,
    now: float,
    refs: tuple[str, ...] = (),
    **facts: Any,
) -> Record:
    return Record(
        id=id,
        token=token,
        region=region,
        inputs=inputs,
        outputs={**outputs, "region": region},
        refs=refs,
        facts={**facts, EXISTING: True},
        created_at=now,
    )
