"""The guard script run by real shells, on a root of its own, with stand-ins for what would touch this computer."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path

import pytest
from clusterctl_bootstrap.boothook import boothook, guard
from clusterctl_bootstrap.node_plan import NodePlan

CLUSTER_ID = "0123456789ab"
UPTIME_S = 5000
SYSTEMD_STARTED_S = 100
HOUR_S = 3600
END = "systemctl start --no-block clusterctl-deadline.service"
"""Ends the machine."""
FAKES = {
    "systemctl": 'echo "systemctl $*" >>"$LOG"; case $* in *UserspaceTimestampMonotonic) echo 100000000 ;; esac',
    "python3": "echo 5000",
    "nft": '[ "$1" = -v ] && exit; echo nft >>"$LOG"; cat >>"$LOG"',
    "iptables": "exit 127",
    "bash": '[ -z "$AWS_DATE" ] || echo "$AWS_DATE"',
}
SHELLS = ("dash", "bash")


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """What one run of the guard left behind."""

    root: Path
    calls: str

    def unit(self, name: str) -> str:
        return (self.root / "run/systemd/system" / name).read_text()

    def run(self, name: str) -> str:
        return (self.root / "run/clusterctl" / name).read_text().strip()

    @property
    def is_ended(self) -> bool:
        return END in self.calls

    @property
    def is_counted(self) -> bool:
        return "systemctl restart clusterctl-deadline.timer" in self.calls


RunGuard = Callable[..., Guarded]


@pytest.fixture(params=SHELLS)
def run_guard(request: pytest.FixtureRequest, tmp_path: Path) -> RunGuard:
    """Runs the guard of a node with `left_s` to live; AWS's clock is `aws_ahead_s` ahead, or silent (None)."""
    shell = shutil.which(request.param)
    if shell is None:
        pytest.fail(f"no {request.param} on this computer")
    fakes = tmp_path / "fakes"
    fakes.mkdir()

    def run(
        left_s: int,
        *,
        aws_ahead_s: int | None = None,
        imds: str = "root",
        files: Mapping[str, str] | None = None,
        fakes_of: Mapping[str, str] | None = None,
    ) -> Guarded:
        for name, text in {**FAKES, **(fakes_of or {})}.items():
            (fakes / name).write_text(f"#!/bin/sh\n{text}\n")
            (fakes / name).chmod(0o755)
        root = tmp_path / "root"
        for path, text in {"proc/uptime": f"{UPTIME_S}.25 99.00\n", **(files or {})}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (tmp_path / "guard").write_text(guard(plan(left_s, imds)))
        log = tmp_path / "log"
        log.write_text("")
        date = "" if aws_ahead_s is None else formatdate(time.time() + aws_ahead_s, usegmt=True)
        env = {"PATH": f"{fakes}:/usr/bin:/bin", "LOG": str(log), "CLUSTERCTL_ROOT": str(root), "AWS_DATE": date}
        subprocess.run([shell, str(tmp_path / "guard")], env=env, check=True, timeout=20)
        return Guarded(root=root, calls=log.read_text())

    return run


def plan(left_s: int, imds: str = "root") -> NodePlan:
    return NodePlan(
        cluster="train",
        cluster_id=CLUSTER_ID,
        run=1,
        generation=0,
        slot=0,
        rank=0,
        nodes=4,
        gpus_per_node=8,
        slot_cidr="10.0.8.0/21",
        deadline=datetime.fromtimestamp(int(time.time()) + left_s, UTC),
        imds=imds,
    )


def deadline_file(left_s: int, *, cluster_id: str = CLUSTER_ID, generation: int = 1) -> dict[str, str]:
    return {"var/lib/clusterctl/deadline": f"{cluster_id} {generation} {int(time.time()) + left_s}\n"}


@pytest.mark.parametrize("wrong_by_s", [-HOUR_S, 0, HOUR_S])
def test_a_wrong_clock_of_the_machine_moves_nothing_once_aws_told_the_time(
    run_guard: RunGuard, wrong_by_s: int
) -> None:
    """The machine's clock is `wrong_by_s` ahead of AWS's, and the deadline two hours away by AWS's."""
    done = run_guard(2 * HOUR_S - wrong_by_s, aws_ahead_s=-wrong_by_s)
    assert done.is_counted
    assert not done.is_ended
    seconds = int(done.unit("clusterctl-deadline.timer").partition("OnStartupSec=")[2].split()[0])
    # 7200 s by AWS's clock whatever the own one says: the argument above shifts both alike.
    assert abs(seconds - (UPTIME_S - SYSTEMD_STARTED_S + 2 * HOUR_S)) <= 2
    clock, at = done.run("last-stage-at").split()
    assert clock == "uptime"
    assert abs(int(at) - (UPTIME_S + 2 * HOUR_S + 90)) <= 2


def test_the_wall_clock_timer_only_looks_and_after_the_counted_one(run_guard: RunGuard) -> None:
    done = run_guard(HOUR_S, aws_ahead_s=0)
    timer = done.unit("clusterctl-deadline-clock.timer")
    at = int(timer.partition("OnCalendar=@")[2].split()[0])
    assert at > int(done.run("last-stage-at").split()[1]) - UPTIME_S - 90 + time.time() - 2
    assert "guard" in done.unit("clusterctl-deadline-clock.service")
    assert "poweroff" not in done.unit("clusterctl-deadline-clock.service")


def test_without_aws_the_wall_clock_decides_alone(run_guard: RunGuard) -> None:
    done = run_guard(HOUR_S)
    assert not done.is_counted
    assert "systemctl restart clusterctl-deadline-clock.timer" in done.calls
    assert done.run("last-stage-at").startswith("clock ")


def test_time_is_counted_on_when_the_metadata_service_falls_silent(run_guard: RunGuard) -> None:
    run_guard(2 * HOUR_S, aws_ahead_s=HOUR_S)
    later = run_guard(2 * HOUR_S, files={"proc/uptime": f"{UPTIME_S + 600}.00 1.00\n"})
    assert later.is_counted
    clock, at = later.run("last-stage-at").split()
    assert clock == "uptime"
    assert abs(int(at) - (UPTIME_S + HOUR_S + 90)) <= 2


@pytest.mark.parametrize("aws_ahead_s", [None, 0])
def test_a_deadline_that_is_past_ends_the_machine_at_once(run_guard: RunGuard, aws_ahead_s: int | None) -> None:
    assert run_guard(-1, aws_ahead_s=aws_ahead_s).is_ended


def test_a_machine_whose_clock_is_late_ends_when_aws_says_so(run_guard: RunGuard) -> None:
    assert run_guard(600, aws_ahead_s=HOUR_S).is_ended


def test_a_machine_whose_clock_is_early_is_left_alone(run_guard: RunGuard) -> None:
    assert not run_guard(-600, aws_ahead_s=-HOUR_S).is_ended


PUSHED: dict[str, tuple[dict[str, str], bool]] = {
    "earlier": (deadline_file(-1), True),
    "of another cluster": (deadline_file(-1, cluster_id="ba9876543210"), False),
    "not newer than birth": (deadline_file(-1, generation=0), False),
    "half a line": ({"var/lib/clusterctl/deadline": f"{CLUSTER_ID} 1"}, False),
    "no number": ({"var/lib/clusterctl/deadline": f"{CLUSTER_ID} 1 soon\n"}, False),
    "empty": ({"var/lib/clusterctl/deadline": ""}, False),
}


@pytest.mark.parametrize(("files", "is_ended"), PUSHED.values(), ids=PUSHED.keys())
def test_a_pushed_deadline_holds_if_it_is_whole_newer_and_of_this_cluster(
    run_guard: RunGuard, files: Mapping[str, str], is_ended: bool
) -> None:
    assert run_guard(HOUR_S, files=files).is_ended is is_ended


def test_a_pushed_deadline_that_is_later_beats_a_birth_deadline_that_is_past(run_guard: RunGuard) -> None:
    assert not run_guard(-60, files=deadline_file(HOUR_S)).is_ended


def test_the_deadline_is_armed_before_the_metadata_rule(run_guard: RunGuard) -> None:
    calls = run_guard(HOUR_S).calls
    assert calls.index("clusterctl-deadline-clock.timer") < calls.index("nft")


def test_the_metadata_rule_holds_for_users_and_containers_in_both_protocols(run_guard: RunGuard) -> None:
    done = run_guard(HOUR_S)
    assert done.run("imds") == "root"
    assert done.calls.count("169.254.169.254") == 2
    assert done.calls.count("fd00:ec2::254") == 2


NO_NFT = {"nft": "exit 127"}
NEW_RULES = 'echo "iptables $*" >>"$LOG"; case $* in *" -C "*) exit 1 ;; esac'
OLD_RULES = 'echo "iptables $*" >>"$LOG"'


def test_without_nft_the_metadata_rule_is_made_by_iptables_where_docker_puts_nothing_before_it(
    run_guard: RunGuard,
) -> None:
    done = run_guard(HOUR_S, fakes_of={**NO_NFT, "iptables": NEW_RULES})
    assert done.run("imds") == "root"
    made = [line for line in done.calls.splitlines() if " -I " in line]
    assert made == [
        "iptables -w 5 -t filter -I OUTPUT -d 169.254.169.254 -m owner ! --uid-owner 0 -j REJECT",
        "iptables -w 5 -t mangle -I FORWARD -d 169.254.169.254 -j DROP",
    ]
    again = run_guard(HOUR_S, fakes_of={**NO_NFT, "iptables": OLD_RULES})
    assert again.run("imds") == "root"
    assert " -I " not in again.calls


@pytest.mark.parametrize(
    ("iptables", "reason"),
    [
        ("exit 127", "failed: nft is missing; the image needs the package nftables"),
        ('[ "$1" = -V ] || { echo no owner match >&2; exit 2; }', "failed: iptables: no owner match"),
    ],
)
def test_a_machine_that_cannot_close_the_metadata_service_says_why(
    run_guard: RunGuard, iptables: str, reason: str
) -> None:
    assert run_guard(HOUR_S, fakes_of={**NO_NFT, "iptables": iptables}).run("imds") == reason


def test_a_cluster_that_opens_the_metadata_service_has_no_rule(run_guard: RunGuard) -> None:
    done = run_guard(HOUR_S, imds="users")
    assert done.run("imds") == "users"
    assert "nft" not in done.calls


def test_a_process_that_ignores_the_end_is_given_two_seconds(run_guard: RunGuard) -> None:
    limit = run_guard(HOUR_S).root / "run/systemd/system.conf.d/clusterctl.conf"
    assert limit.read_text() == "[Manager]\nDefaultTimeoutStopSec=2s\n"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("render", [guard, boothook])
def test_every_shell_reads_what_is_rendered(tmp_path: Path, shell: str, render: Callable[[NodePlan], str]) -> None:
    (tmp_path / "script").write_text(render(plan(HOUR_S)))
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=20)
