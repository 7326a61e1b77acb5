"""rehearsal.yaml is strict; faults lie over it and outlive a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.plugin.stack_settings import StackContext, stack_context
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.behaviour import Behaviour
from clusterctl_rehearsal.region.settings import SettingsError, settings_from_rows
from clusterctl_rehearsal.server.throttle import Throttle

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"machine": "none"}, "machine: unknown key (did you mean machines?)"),
    ({"machines": "vm"}, "machines: 'vm' is not one of auto, nspawn, process, none"),
    ({"capacity": 3}, "capacity: 3 is not a mapping of names to counts"),
    ({"capacity": {"p5.48xlarge": -1}}, "capacity: {'p5.48xlarge': -1} is not a mapping of names to counts"),
    ({"latency_ms": "slow"}, "latency_ms: 'slow' is not a count"),
    ({"zones": []}, "zones: [] is not a list of letters, such as [a, b, c]"),
    ({"zones": ["us-west-2a"]}, "zones: ['us-west-2a'] is not a list of letters, such as [a, b, c]"),
    ({"shares": {"/a": 1}}, "shares: {'/a': 1} is not a mapping of folders to folders"),
    ({"storage_s": -1}, "storage_s: -1 is not a count"),
    ({"buckets": "all"}, "buckets: 'all' is not a list of names"),
    ({"quotas": {"addreses": 20}}, "quotas.addreses: there is no such quota (did you mean addresses?)"),
    ({"clock_ahead_s": "1h"}, "clock_ahead_s: '1h' is not a whole number of seconds"),
    ({"racks": 0}, "racks: 0 is not a count from 1"),
    ({"racks": True}, "racks: True is not a count from 1"),
    ({"strict": "yes"}, "strict: 'yes' is not true or false"),
]


@pytest.mark.parametrize(("rows", "sentence"), WRONG)
def test_a_wrong_setting_is_named_with_what_is_allowed(rows: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from_rows(rows, source="rehearsal.yaml")
    assert str(caught.value) == f"rehearsal.yaml: {sentence}"


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(SettingsError, match=r"machines:.*; latency_ms:"):
        settings_from_rows({"machines": "vm", "latency_ms": -1}, source="rehearsal.yaml")


def test_a_quota_that_is_not_named_stays_a_new_account_s() -> None:
    settings = settings_from_rows({"quotas": {"vcpus": 8}, "zones": ["a", "d"]}, source="x")
    assert settings.quotas == {"addresses": 5, "vpcs": 5, "vcpus": 8}
    assert settings.zones == ("a", "d")


def test_faults_outlive_a_restart_and_can_be_taken_away(tmp_path: Path) -> None:
    first = Behaviour(tmp_path)
    first.register({"latency_ms": 5})
    first.set_fault("latency_ms", 200)
    again = Behaviour(tmp_path)
    assert again.settings().latency_ms == 200
    again.set_fault("latency_ms", None)
    assert Behaviour(tmp_path).settings().latency_ms == 5


def test_faults_that_come_at_once_are_all_kept(tmp_path: Path) -> None:
    behaviour = Behaviour(tmp_path)
    names = [f"train-{number}" for number in range(64)]
    with ThreadPoolExecutor(max_workers=16) as threads:
        list(threads.map(lambda name: behaviour.set_fault_entry("fail_bootstrap", name, "broken"), names))
    assert behaviour.faults()["fail_bootstrap"] == dict.fromkeys(names, "broken")
    for name in names:
        behaviour.set_fault_entry("fail_bootstrap", name, None)
    assert Behaviour(tmp_path).faults() == {}


def test_requests_beyond_the_rate_are_told_to_wait() -> None:
    now = 100.0
    throttle = Throttle(clock=lambda: now)
    for _ in range(4):
        throttle.take(2)
    with pytest.raises(AwsError, match="RequestLimitExceeded"):
        throttle.take(2)
    now += 0.5
    throttle.take(2)
    throttle.take(0)


def _context(folder: Path, **environment: str) -> StackContext:
    return stack_context(environment, home=RehearsalHome(root=folder / "home"), folder=folder)


def test_a_stack_without_the_file_has_awss_usual_limits(tmp_path: Path) -> None:
    assert _context(tmp_path).settings() == {}
    assert _context(tmp_path).machines == "auto"


def test_the_file_is_read_where_the_environment_says(tmp_path: Path) -> None:
    stack = tmp_path / "stack"
    stack.mkdir()
    (stack / "rehearsal.yaml").write_text("machines: none\n")
    assert _context(tmp_path, CLUSTERCTL_STACK_DIR=str(stack)).machines == "none"


@pytest.mark.parametrize("text", ["machines: [", "- 1", "machines: vm"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "rehearsal.yaml").write_text(text)
    with pytest.raises(SettingsError, match=r"rehearsal\.yaml"):
        _context(tmp_path).settings()


def test_a_misspelt_instance_type_would_have_enough_and_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rehearsal.yaml").write_text("capacity: {p5.48xlage: 3}\n")
    with pytest.raises(SettingsError) as caught:
        _context(tmp_path).settings()
    sentence = "capacity.p5.48xlage: there is no such instance type (did you mean p5.48xlarge?)"
    assert str(caught.value) == f"{tmp_path / 'rehearsal.yaml'}: {sentence}"


def test_shares_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "rehearsal.yaml").write_text(f"shares: {{{tmp_path}: /opt/x, /nowhere: /opt/y}}")
    assert _context(tmp_path).settings()["shares"] == {str(tmp_path): "/opt/x"}


def test_the_proof_is_the_runs_nonce(tmp_path: Path) -> None:
    _context(tmp_path, CLUSTERCTL_REHEARSAL_NONCE="a1b2").prove()
    assert (tmp_path / "home/proof/a1b2").exists()
    _context(tmp_path, CLUSTERCTL_REHEARSAL_NONCE="../../etc").prove()
    assert [path.name for path in (tmp_path / "home/proof").iterdir()] == ["a1b2"]
