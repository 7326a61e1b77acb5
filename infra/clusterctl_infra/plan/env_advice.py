"""One table of variables that people copy from script to script although they do nothing any more, or do harm.

Sources, all looked at in 2026-11: NCCL's user guide, docs/userguide/source/env.rst, and the strings in libnccl 2.29.7;
aws-ofi-nccl, doc/efa-env-var.md and src/platform-aws.cpp; torch 2.13, ProcessGroupNCCL.hpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clusterctl_infra.plan.case import Case, warning
from clusterctl_infra.plan.model import Problem

Verdict = Literal["dead", "old", "harmful", "risky"]
"""dead: nothing reads it; old: it has another name now; harmful: it makes things worse; risky: it makes things worse
unless you know why it is set."""
NCCL_GUIDE = "NCCL user guide, environment variables"
OFI = "aws-ofi-nccl, doc/efa-env-var.md"
PLATFORM = "aws-ofi-nccl, src/platform-aws.cpp"
TORCH = "torch 2.13, ProcessGroupNCCL.hpp"
SHELL = "environ(7)"


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Advice about a variable; see `Verdict`."""

    name: str
    """A regular expression."""
    verdict: Verdict
    sentence: str
    source: str
    value: str = ".*"
    """A regular expression for the values that the advice is about."""
    fabric: Literal["any", "efa"] = "any"


def copied_variables(case: Case) -> Iterator[Problem]:
    """A warning for each variable of `env:` that the table knows."""
    has_efa = any(kind != "interface" for _, _, kind in case.plan.interface_layout)
    for name, value in case.config.env.items():
        for advice in ADVICE:
            applies = advice.fabric == "any" or has_efa
            if applies and re.fullmatch(advice.name, name) and re.fullmatch(advice.value, value, re.DOTALL):
                yield warning(f"env.{name}", f"{advice.verdict}: {advice.sentence}")


ADVICE = (
    Advice(
        name="NCCL_(TREE|LL|SINGLE_RING)_THRESHOLD",
        verdict="dead",
        sentence="NCCL removed it years ago (2.5 and before) and ignores it; leave it out",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="NCCL_(TIMEOUT|MIN_CHANNELS|MAX_CHANNELS)",
        verdict="dead",
        sentence="NCCL has no variable of that name; a timeout is an argument of torch's init_process_group",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="NCCL_(ASYNC_ERROR_HANDLING|BLOCKING_WAIT|DESYNC_DEBUG)",
        verdict="old",
        sentence="torch's former name for it, on its way out; write TORCH_ before it",
        source=TORCH,
    ),
    Advice(
        name="NCCL_PROTO",
        verdict="harmful",
        sentence="was for aws-ofi-nccl 1.5; today it takes NCCL's faster protocols away, and forcing LL128 can corrupt "
        "data; leave it out",
        source=f"{OFI}; {NCCL_GUIDE}",
    ),
    Advice(
        name="NCCL_ALGO",
        verdict="risky",
        sentence="takes the choice from NCCL for every size and count, NVLS and the tuner included, and a name that "
        "NCCL does not know fails the job; leave it out unless you measure",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="NCCL_(BUFFSIZE|MIN_NCHANNELS|MAX_NCHANNELS|P2P_NET_CHUNKSIZE|NET_FORCE_FLUSH)",
        verdict="risky",
        sentence="takes the choice from NCCL and the EFA plugin, which know the instance type; leave it out unless you "
        "measure",
        source=PLATFORM,
    ),
    Advice(
        name="NCCL_(SOCKET_NTHREADS|NSOCKS_PERTHREAD)",
        verdict="dead",
        sentence="is about TCP and does nothing on EFA; leave it out",
        source=OFI,
        fabric="efa",
    ),
    Advice(
        name="NCCL_IB_.*",
        verdict="dead",
        sentence="is about InfiniBand and does nothing on EFA; leave it out",
        source=NCCL_GUIDE,
        fabric="efa",
    ),
    Advice(
        name="NCCL_(P2P|SHM)_DISABLE",
        verdict="harmful",
        sentence="is for finding faults: GPUs of one node then talk through slower ways; leave it out",
        value="[^0]*[1-9].*",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="NCCL_NVLS_ENABLE",
        verdict="risky",
        sentence="1 fails the job where the default (2) would go on without NVLink SHARP; leave it out",
        value="1",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="NCCL_SOCKET_IFNAME",
        verdict="risky",
        sentence="names are prefixes here, and ^ lets every other interface in; each node finds the right one when it "
        "boots, leave it out or write = before an exact name",
        value="[^=].*",
        source=NCCL_GUIDE,
    ),
    Advice(
        name="(GLOO|TP)_SOCKET_IFNAME",
        verdict="harmful",
        sentence="takes exact names only, no ^ and no =; each node finds the right one when it boots, leave it out",
        value="[=^].*",
        source="torch, c10d ProcessGroupGloo and tensorpipe",
    ),
    Advice(
        name="NCCL_NET",
        verdict="risky",
        sentence="must be the plugin's own name, or every job fails; write fabric: required instead",
        source="aws-ofi-nccl, src/nccl_ofi_interface_nvidia.cpp",
    ),
    Advice(
        name="NCCL_(NET_PLUGIN|TUNER_PLUGIN|TOPO_FILE)",
        verdict="risky",
        sentence="the EFA plugin sets it for the instance type; leave it out",
        source=PLATFORM,
        fabric="efa",
    ),
    Advice(
        name="FI_PROVIDER",
        verdict="dead",
        sentence="the plugin has chosen efa by itself since 1.6; leave it out",
        value="efa",
        source=OFI,
    ),
    Advice(
        name="FI_PROVIDER",
        verdict="harmful",
        sentence="anything but efa switches the plugin's choice of EFA off; leave it out",
        value="(?!efa$).*",
        source=PLATFORM,
        fabric="efa",
    ),
    Advice(
        name="FI_EFA_USE_DEVICE_RDMA",
        verdict="risky",
        sentence="libfabric has decided this since 1.18, and 1 is wrong on types without RDMA such as g5; leave it out",
        source=OFI,
    ),
    Advice(
        name="FI_EFA_(FORK_SAFE|ENABLE_SHM_TRANSFER|SET_CUDA_SYNC_MEMOPS)",
        verdict="dead",
        sentence="the plugin takes care of it; leave it out",
        source=OFI,
    ),
    Advice(
        name="RDMAV_.*",
        verdict="harmful",
        sentence="breaks things on newer kernels; leave it out",
        source=OFI,
    ),
    Advice(
        name="OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK",
        verdict="harmful",
        sentence="lets a job go on slowly where GPUDirect is broken; leave it out, so that it says so",
        value="1",
        source=PLATFORM,
    ),
    Advice(
        name="MASTER_ADDR",
        verdict="risky",
        sentence="replaces slot 0's address on every node; the other variables for it (FLOW_MAIN_IP, …) still name "
        "slot 0",
        source="docs/env.md",
    ),
    Advice(
        name="PATH|LD_LIBRARY_PATH|PYTHONPATH|HOME",
        verdict="risky",
        sentence="replaces what a node has there, since $ is not expanded in env:",
        source=SHELL,
    ),
)
