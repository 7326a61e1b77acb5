"""What is really there, by the kernel and by the region's own files: nothing that clusterctl wrote down is asked."""

from __future__ import annotations

import functools
import time

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.resource import CloudResource
from clusterctl.reap.search import search
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.region_keys import RegionAccess
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.region.bill import BillRow, bill, billed_things
from clusterctl_rehearsal.region.journal import BILLING, INSTANCE
from clusterctl_rehearsal.region.spot_notices import taken_back_at
from clusterctl_rehearsal.region.store import Store

from tests.integration.region_access import access_of
from tests.integration.rehearsed import Rehearsed, alive

REGION = "us-west-2"
DATA = ("aws:efs/fileSystem:FileSystem", "aws:fsx/lustreFileSystem:LustreFileSystem")
BILLS = (*BILLING, *DATA)
"""What bills by the hour, or by its content."""


def home_of(cluster: Rehearsed) -> RehearsalHome:
    """The cluster's rehearsal."""
    return rehearsal_home(cluster.env)


def machines_alive(cluster: Rehearsed) -> list[str]:
    """Nodes that have processes."""
    driver = ProcessDriver(root=home_of(cluster).machines)
    found = [node for network, node in driver.found() if network == cluster.name]
    return sorted({*found, *alive(cluster.name)})


def billing(cluster: Rehearsed) -> dict[str, str]:
    """Id → type of everything that bills now."""
    return {row.id: row.token for row in Store(home_of(cluster).store).live() if row.token in BILLS}


def instances_of(cluster: Rehearsed) -> list[str]:
    """Ids of the instances that bill now."""
    return sorted(id for id, token in billing(cluster).items() if token == INSTANCE)


def noticed(cluster: Rehearsed) -> list[str]:
    """Ids of the instances that have AWS's notice, and live."""
    return [row.id for row in Store(home_of(cluster).store).live(INSTANCE) if taken_back_at(row) is not None]


def unlisted(cluster: Rehearsed) -> list[str]:
    """What bills and `reap` does not see: a leak. What goes while it is looked at is none."""
    before = billing(cluster)
    listed = {thing.id for thing in reaped_things(cluster)}
    after = billing(cluster)
    return sorted(f"{token} {id}" for id, token in before.items() if id in after and id not in listed)


def reaped_things(cluster: Rehearsed) -> list[CloudResource]:
    """Every thing that `reap` finds."""
    access = access_of(home_of(cluster))
    found = search(lambda region: _clients(region, access), (REGION,), all_regions=False)
    return [thing for remains in found.remains for thing in remains.things]


@functools.cache
def _clients(region: str, access: RegionAccess) -> Clients:
    """Cached, since boto3 reads its descriptions of all services anew for each."""
    return AwsClients.at(access, region=region)


def billed(cluster: Rehearsed, *, until: float | None = None) -> list[BillRow]:
    """The region's bill of all that there ever was, up to an instant, or to now."""
    store = Store(home_of(cluster).store)
    things = billed_things(store.journal.rows(), store.live())
    rows = bill(things, load_catalog(), until=time.time() if until is None else until)
    assert all(row.usd is not None for row in rows), "a price is unknown"
    return list(rows)
