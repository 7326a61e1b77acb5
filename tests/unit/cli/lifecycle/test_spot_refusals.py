"""What is said when AWS makes no spot machine, beside AWS's own sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.events import Refusal
from clusterctl.lifecycle.capacity_refusals import ROLE, spot_help
from clusterctl.lifecycle.intent import Intent
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.stack import stack_settings

from tests.unit.infra.plan.plan_cases import a_config

CATALOG = load_catalog()


def refused(code: str | None) -> RunResult:
    refusals = (Refusal(code=code, text="No.", urn="u"),)
    return RunResult(succeeded=False, interrupted=False, changes={}, refusals=refusals, log=Path("/x.log"), stderr="")


def an_intent(**changes: Any) -> Intent:
    settings = stack_settings({})
    config = a_config(**{"capacity": "spot", **changes})
    return Intent(config=config, settings=settings, changes={}, config_text="", catalog=CATALOG)


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("InsufficientInstanceCapacity", "not have that many spare p5.48xlarge there now", None),
        ("MaxSpotInstanceCountExceeded", "quotas of their own", "aws service-quotas list-service-quotas"),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "somebody who may has to do it once", ROLE),
        ("SpotMaxPriceTooLow", "the price on demand of 2026-01", "clusterctl prices refresh --region us-west-2 p5.48x"),
    ],
)
def test_each_of_aws_s_codes_has_a_sentence_and_what_helps(code: str, words: str, hint: str | None) -> None:
    advice = spot_help(refused(code), an_intent(), source="cluster.yaml", is_new=True)
    assert advice is not None
    assert words in advice.sentence
    assert (advice.hint is None) == (hint is None)
    assert (advice.hint or "").startswith(hint or "")


def test_beside_nodes_that_run_nothing_is_advised_that_would_be_refused() -> None:
    advice = spot_help(refused("InsufficientInstanceCapacity"), an_intent(), source="cluster.yaml", is_new=False)
    assert advice is not None
    assert advice.sentence.endswith("try again; for another zone, or capacity: on-demand, end the cluster first.")


def test_a_maximum_of_one_s_own_that_is_too_low_is_to_be_changed_where_it_stands() -> None:
    low, high = an_intent(caps={"price_usd_per_hour": 10}), an_intent(caps={"price_usd_per_hour": 900})
    advice = spot_help(refused("SpotMaxPriceTooLow"), low, source="s/cluster.yaml", is_new=True)
    assert advice is not None
    assert advice.sentence.startswith("The maximum is caps.price_usd_per_hour in s/cluster.yaml")
    assert advice.hint == "${EDITOR:-nano} s/cluster.yaml"
    above = spot_help(refused("SpotMaxPriceTooLow"), high, source="s/cluster.yaml", is_new=True)
    assert above is not None
    assert above.sentence.startswith("The maximum is the price on demand")
    nothing_known = dataclasses.replace(high, catalog=dataclasses.replace(CATALOG, prices={}))
    assert spot_help(refused("SpotMaxPriceTooLow"), nothing_known, source="s/cluster.yaml", is_new=True) == advice


@pytest.mark.parametrize("code", ["UnauthorizedOperation", None])
def test_what_is_not_about_spot_is_left_as_aws_says_it(code: str | None) -> None:
    assert spot_help(refused(code), an_intent(), source="cluster.yaml", is_new=True) is None
    on_demand = an_intent(capacity="on-demand")
    assert spot_help(refused("InsufficientInstanceCapacity"), on_demand, source="cluster.yaml", is_new=True) is None
