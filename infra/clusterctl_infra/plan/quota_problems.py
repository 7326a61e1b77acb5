"""Problems of a plan that needs more than AWS's default quotas."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.plan.case import Case, warning
from clusterctl_infra.plan.model import Problem

INTERFACE_QUOTA = 5000
"""Network interfaces in a region (Amazon VPC quotas, L-DF5E4CA3): EFA interfaces without an address count, too."""


def interfaces_suffice(case: Case) -> Iterator[Problem]:
    nodes, each = case.config.nodes, len(case.plan.interface_layout)
    if nodes * each > INTERFACE_QUOTA:
        yield warning(
            "nodes",
            f"{nodes} nodes of {case.plan.instance_type} have {nodes * each:,} network interfaces; AWS gives "
            f"{INTERFACE_QUOTA:,} per region by default (quota L-DF5E4CA3): where that holds, up fails in the middle, "
            "and is undone",
        )


QUOTA_RULES = (interfaces_suffice,)
