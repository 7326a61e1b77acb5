"""A few combinations of capacity, access, network and storage, by the real engine: up, stable, and gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # settings as YAML gives them

import pytest
from clusterctl_rehearsal.region.existing import is_existing

from tests.combinations import PLACES_ID, SERVICES_ID, SUBNET_ID, VPC_ID, Row, config_of, engine_rows
from tests.integration.rehearsed import rehearsed

ZONE = "us-west-2c"
NETWORK: dict[str, Any] = {
    "vpc_id": VPC_ID,
    "vpc_cidr": "172.31.0.0/16",
    "subnet_id": SUBNET_ID,
    "subnet_cidr": "172.31.16.0/26",
    "service_subnet_id": SERVICES_ID,
    "service_subnet_cidr": "172.31.17.0/28",
    "zone": ZONE,
}


@pytest.mark.parametrize("row", engine_rows(), ids="-".join)
def test_a_combination_comes_up_changes_nothing_by_itself_and_goes_whole(row: Row, tmp_path: Path) -> None:
    config = config_of(row)
    with rehearsed(tmp_path, machines="none", **config) as cluster:
        cluster.config.pop("zone")
        cluster.write(machines="none", settings={"existing": existing(row)})
        cluster.up()
        preview = cluster.pulumi("preview", "--refresh", "--expect-no-changes")
        assert preview.exit_code == 0, preview.text
        cluster.ok("down", str(cluster.folder), "--all")
        assert [row.id for row in cluster.resources() if not is_existing(row)] == []


def existing(row: Row) -> dict[str, Any]:
    """What the account has for a combination before its cluster."""
    capacity, access, network, _ = row
    places = {
        "id": PLACES_ID,
        "instance_type": config_of(row)["instance_type"],
        "zone": ZONE,
        "places": 1,
        **({"is_block": True, "ends_in_s": 86_400} if capacity == "capacity block" else {"match": "open"}),
    }
    way_out = "nat" if access == "Session Manager" else "gateway"
    return {
        "networks": [{**NETWORK, "way_out": way_out}] if network == "adopted" else [],
        "reservations": [places] if capacity in ("reservation", "capacity block") else [],
    }
