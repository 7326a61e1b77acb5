"""Whether this machine has the fabric that its plan says, shown in status.json as `checks`.

What is looked for: EC2 User Guide, "Get started with EFA and NCCL", and what aws-efa-installer sets up; 2026-11. A
machine without EFA is never called well: its verdict is "not applicable", a rehearsed one's "simulated".
"""

import contextlib
from pathlib import Path
from typing import Dict, List

from clusterctl_bootstrap.node import facts, nccl, status
from clusterctl_bootstrap.node.files import log
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.phase import PhaseFailed, wait

APPEAR_TIMEOUT_S = 30
"""Some images bring the devices up late (p5en; AWS's own health check looks three times)."""
VERDICTS = {0: "ok", 9: "not applicable"}
COMMANDS = {
    "libfabric": "/opt/amazon/efa/bin/fi_info -p efa",
    "locked memory": "su - ubuntu -c 'ulimit -l; [ $(ulimit -l) = unlimited ]'",
    "huge pages": "awk '/HugePages_Total/ {print $2; exit !$2}' /proc/meminfo",
    # An NVSwitch is a bridge (class 06, 80) of NVIDIA's (NVIDIA go-nvlib, nvpci).
    "fabric manager": "grep -qs ^pci:v000010DE.*bc06sc80 /sys/bus/pci/devices/*/modalias || "
    "{ echo no NVSwitch; exit 9; }; systemctl is-active nvidia-fabricmanager",
}
"""The exit code is the verdict, the last line what was seen."""


def check(root: Path, outside: Outside) -> None:
    """Notes every check. Raises PhaseFailed when a fabric is required and interfaces are missing."""
    known = facts.present(root)
    rows = checks(root, outside, known["efa_interfaces"])
    status.note(root, checks=rows)
    failed = ["%(name)s: %(detail)s" % row for row in rows if row["verdict"] == "failed"]
    for each in failed:
        log(root, each)
    if known["fabric"] == "required" and rows[0]["verdict"] == "failed":
        raise PhaseFailed("fabric: required, but %s: dmesg | grep efa" % failed[0])


def checks(root: Path, outside: Outside, wanted: int) -> List[Dict[str, str]]:
    """Name, verdict and what was seen, for each check: the interfaces and, if they are real, all that they need."""
    if not wanted:
        return [_row("EFA interfaces", "not applicable", "none planned")]
    stand_in = root / "var/lib/clusterctl/simulated-efa"
    if stand_in.exists():
        return [_interfaces(int(stand_in.read_text()), wanted, "simulated")]
    with contextlib.suppress(PhaseFailed):
        wait(outside, APPEAR_TIMEOUT_S, lambda: "" if nccl.efa_count(root) >= wanted else "fewer", 1)
    rows = [_interfaces(nccl.efa_count(root), wanted, "ok")]
    for name, command in COMMANDS.items():
        code, output = outside.run(["sh", "-c", command])
        rows.append(_row(name, VERDICTS.get(code, "failed"), (output.splitlines() or ["exit %d" % code])[-1]))
    return rows


def _interfaces(present: int, wanted: int, verdict: str) -> Dict[str, str]:
    mark = " (simulated)" if verdict == "simulated" else ""
    return _row("EFA interfaces", verdict if present == wanted else "failed", "%d of %d%s" % (present, wanted, mark))


def _row(name: str, verdict: str, detail: str) -> Dict[str, str]:
    return {"name": name, "verdict": verdict, "detail": detail}
