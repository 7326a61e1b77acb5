"""The way to a test's rehearsed region, for a client of AWS's API that is not clusterctl's own."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients
from clusterctl_infra.region_keys import RegionAccess, read_keys
from clusterctl_rehearsal.home import RehearsalHome, rehearsal_home
from clusterctl_rehearsal.region.client import ensure_region


def access_of(home: RehearsalHome) -> RegionAccess:
    """The endpoint and keys of the region in this home, which is started if need be."""
    endpoint = str(ensure_region(home)["endpoint"])
    return RegionAccess(endpoint_url=endpoint, keys=read_keys(home.keys_file))


def clients_of(environ: Mapping[str, str], region: str = "us-west-2") -> Clients:
    """boto3's clients for the region of the home that `environ` names."""
    return AwsClients.at(access_of(rehearsal_home(environ)), region=region)
