"""What an `up` will need from AWS, checked beforehand: by `plan --online`, and by each `up` on AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import CloudError
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.storage_model import buckets_of

from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.preflight import ask_all
from clusterctl.cloud.preflight_finding import Finding
from clusterctl.cloud.preflight_needs import Needs
from clusterctl.cloud.quotas import addresses_wanted
from clusterctl.engine.region import region_access, tell_region
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_plan import StackPlan
from clusterctl.home import Home


def needs_of(
    config: ClusterConfig,
    catalog: Catalog,
    cluster_plan: ClusterPlan,
    *,
    machines: int,
    own_id: str | None,
    source: str,
    has_to_be_bought: bool = False,
) -> Needs:
    """What the plan needs from AWS.

    `machines`: how many nodes get a machine that has to be made; `own_id`: the cluster's id, None before it has one;
    `has_to_be_bought`: the plan's capacity block is only an offering so far.
    """
    types = config.instance_rows(catalog)
    adopt = config.network.adopt
    parameter = catalog.image_parameter(config.image, types[0].architecture)
    return Needs(
        region=config.region,
        zone=cluster_plan.chosen_zone,
        types=types,
        nodes=config.nodes,
        machines=machines,
        market=config.market,
        image=cluster_plan.image_id if own_id is not None else parameter or config.image,
        root_disk_gib=config.root_disk,
        addresses=addresses_wanted(cluster_plan),
        reservation_id=None if has_to_be_bought else config.reservation_id,
        vpc_id=None if adopt is None else adopt.vpc_id,
        subnet_id=None if adopt is None else adopt.node_subnet_id,
        is_public=config.access.mode == "public",
        buckets=buckets_of(cluster_plan.storage),
        own_id=own_id,
        source=source,
        tags=cluster_plan.tags,
    )


def online_findings(
    stack: Stack, stack_plan: StackPlan, catalog: Catalog, *, home: Home, environ: Mapping[str, str], now: datetime
) -> tuple[Finding, ...]:
    """What AWS, or the rehearsed region, says about a plan. Raises CloudError, RehearsalError."""
    cluster_plan = stack_plan.plan
    if stack_plan.is_rehearsal:
        tell_region(home, environ, stack.directory, cluster=cluster_plan.name)
    rehearsed = region_access(home, environ) if stack_plan.is_rehearsal else None
    needs = needs_of(
        stack_plan.config,
        catalog,
        cluster_plan,
        machines=0 if stack_plan.is_running else len(cluster_plan.slots),
        own_id=cluster_plan.cluster_id if stack_plan.is_running else None,
        source=stack.source,
    )
    return ask_all(AwsClients.at(rehearsed, region=cluster_plan.region), needs, now=now)


def refuse_findings(findings: Sequence[Finding]) -> None:
    """Raises CloudError with all that AWS would refuse later, and what helps against the first refusal."""
    errors = [row for row in findings if row.level == "error"]
    if errors:
        why = "; ".join(finding_text(row) for row in errors)
        raise CloudError(f"AWS would refuse it: {why}. Nothing was changed", code="Preflight", hint=errors[0].helps)


def finding_text(row: Finding) -> str:
    """`vCPU quota: 4 × p5.48xlarge: 768 (384 on demand)`."""
    return f"{row.about}: {row.value}" + (f" ({row.limit})" if row.limit else "")
