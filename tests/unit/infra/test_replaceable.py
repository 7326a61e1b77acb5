"""The texts in the state that say what a machine is made of, and what it took on at birth."""

from __future__ import annotations

from typing import Any  # a configuration as YAML gives it

import pytest
from clusterctl_infra.replaceable import birth_text, late_facts, trigger_facts, trigger_text

from tests.unit.infra.plan.plan_cases import a_plan


def test_a_trigger_is_read_back_short_texts_as_they_are() -> None:
    facts = trigger_facts(trigger_text({"image": "ami-1", "scripts": [], "mounts": [{"mount": "/shared"}]}))
    assert facts["image"] == "ami-1"
    assert len(facts["scripts"]) == len(facts["mounts"]) == 12
    assert facts["scripts"] != facts["mounts"]


@pytest.mark.parametrize("text", ["", "93fddb81ca4ff5", "[1]", "12"])
def test_what_is_no_trigger_of_ours_has_no_facts(text: str) -> None:
    assert trigger_facts(text) == {}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ()),
        ({"nodes": 2, "env": {"A": "1"}, "caps": {"runtime": "3h"}, "image": "ami-0fffffffffffffff0"}, ()),
        ({"imds": "users"}, ("imds",)),
        ({"access": {"mode": "private"}}, ()),  # an elastic IP is taken from a running machine
        ({"fabric": "none"}, ("access",)),
    ],
)
def test_what_a_machine_takes_on_at_birth_alone(changes: dict[str, Any], names: tuple[str, ...]) -> None:
    assert late_facts(a_plan().birth, a_plan(**changes).birth) == names


def test_packages_and_the_agent_wait_for_a_new_machine() -> None:
    born = birth_text({"agent": "a1", "packages": ["htop"]})
    assert late_facts(born, birth_text({"agent": "a2", "packages": ["htop", "jq"]})) == ("agent", "packages")


@pytest.mark.parametrize(("born", "now"), [(None, "imds=root"), ("imds=root", None), ("", "imds=root")])
def test_what_is_not_known_is_not_said_to_be_missing(born: str | None, now: str | None) -> None:
    assert late_facts(born, now) == ()


def test_every_letter_of_a_birth_text_may_stand_in_a_tag() -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 +-=._:/@")
    assert set(a_plan().birth) <= allowed
    assert len(a_plan().birth) <= 256
