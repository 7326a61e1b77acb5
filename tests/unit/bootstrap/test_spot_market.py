"""What AWS tells a spot machine: its answers, right and odd, and how long they are asked for."""

from __future__ import annotations

import time

import pytest
from clusterctl_bootstrap.node.metadata_service import Page, instant_s
from clusterctl_bootstrap.node.spot_market import (
    ACTION,
    MARKET,
    POLL_S,
    REBALANCE,
    RETRY_S,
    SpotMarket,
    SpotNotices,
    updated,
)

AT_S = 1_800_000_000.0
"""AWS's clock: 2027-01-15 08:00:00 UTC."""
UPTIME_S = 500.0
NONE = Page(None, AT_S)
ENDS = "2027-01-15T08:02:00Z"
INTERRUPTED = SpotNotices(ends=ENDS, ends_s=UPTIME_S + 120, at="2027-01-15T08:00:00Z")
RECOMMENDED = SpotNotices(rebalance="2027-01-15T07:59:58Z", at="2027-01-15T08:00:00Z")


def page(text: str) -> Page:
    return Page(text, AT_S)


ACTIONS = {
    "as AWS writes it": ('{"action": "terminate", "time": "2027-01-15T08:02:00Z"}', INTERRUPTED),
    "with an offset": ('{"action": "terminate", "time": "2027-01-15T09:02:00+01:00"}', INTERRUPTED),
    "another action": ('{"action": "hibernate", "time": "2027-01-15T08:02:00Z"}', INTERRUPTED),
    "more fields": ('{"action": "stop", "time": "2027-01-15T08:02:00Z", "new": [1]}', INTERRUPTED),
    "no time": ('{"action": "terminate"}', INTERRUPTED),
    "a time long past": ('{"action": "terminate", "time": "2020-01-01T00:00:00Z"}', INTERRUPTED),
    "a time in years": ('{"action": "terminate", "time": "2999-01-01T00:00:00Z"}', INTERRUPTED),
    "the first of all times": ('{"action": "terminate", "time": "0001-01-01T00:00:00+23:59"}', INTERRUPTED),
    "a list for a time": ('{"action": "terminate", "time": ["2027-01-15T08:02:00Z"]}', INTERRUPTED),
    "a list for an action": ('{"action": ["terminate"], "time": "2027-01-15T08:02:00Z"}', SpotNotices()),
    "a number for an action": ('{"action": 7, "time": "2027-01-15T08:02:00Z"}', SpotNotices()),
    "lists in lists": ("[" * 30000, SpotNotices()),
    "a number without end": ('{"action": "terminate", "time": ' + "9" * 30000 + "}", SpotNotices()),
    "a time that is none": ('{"action": "terminate", "time": "soon"}', INTERRUPTED),
    "a time without a zone": ('{"action": "terminate", "time": "2027-01-15T08:02:00"}', INTERRUPTED),
    "a number for a time": ('{"action": "terminate", "time": 7}', INTERRUPTED),
    "no action": ('{"time": "2027-01-15T08:02:00Z"}', SpotNotices()),
    "the action none": ('{"action": "none"}', SpotNotices()),
    "no object": ('["terminate"]', SpotNotices()),
    "no JSON": ("<html>busy</html>", SpotNotices()),
    "nothing": ("", SpotNotices()),
}


@pytest.mark.parametrize(("text", "expected"), ACTIONS.values(), ids=ACTIONS.keys())
def test_an_interruption_is_read_whatever_stands_beside_it(text: str, expected: SpotNotices) -> None:
    assert updated(SpotNotices(), page(text), NONE, UPTIME_S) == expected


RECOMMENDATIONS = {
    "as AWS writes it": ('{"noticeTime": "2027-01-15T07:59:58Z"}', "2027-01-15T07:59:58Z"),
    "no time": ('{"other": 1}', "2027-01-15T08:00:00Z"),
    "no JSON": ("busy", ""),
    "a time long past": ('{"noticeTime": "1970-01-01T00:00:00Z"}', "2027-01-15T08:00:00Z"),
    "a list for a time": ('{"noticeTime": [1]}', "2027-01-15T08:00:00Z"),
}


@pytest.mark.parametrize(("text", "since"), RECOMMENDATIONS.values(), ids=RECOMMENDATIONS.keys())
def test_a_recommendation_is_read_with_an_odd_time_too(text: str, since: str) -> None:
    assert updated(SpotNotices(), NONE, page(text), UPTIME_S).rebalance == since


def test_the_time_that_is_left_is_counted_by_awss_clock_and_not_counted_anew() -> None:
    action = page('{"action": "terminate", "time": "2027-01-15T08:02:00Z"}')
    first = updated(SpotNotices(), action, NONE, UPTIME_S)
    assert first.ends_s == UPTIME_S + 120
    assert updated(SpotNotices(), action._replace(at_s=AT_S + 30), NONE, UPTIME_S).ends_s == UPTIME_S + 90
    assert updated(first, action._replace(at_s=AT_S + 5.4), NONE, UPTIME_S + 5) == first


def test_a_notice_that_cannot_be_read_any_more_still_holds_and_one_that_is_gone_does_not() -> None:
    assert updated(INTERRUPTED, page("busy"), NONE, UPTIME_S + 5) == INTERRUPTED
    without_time = Page('{"action": "terminate"}', AT_S + 5)
    assert updated(INTERRUPTED, without_time, NONE, UPTIME_S + 5) == INTERRUPTED
    assert updated(INTERRUPTED, NONE, NONE, UPTIME_S + 5) == SpotNotices()


@pytest.mark.parametrize("date", [None, "", "soon", "Mon, 99 Nov 2026 99:99:99 GMT", "1"])
def test_an_answer_without_a_date_that_can_be_read_counts_by_this_machines_clock(date: str | None) -> None:
    assert abs(instant_s(date) - time.time()) < 60
    assert instant_s("Fri, 15 Jan 2027 08:00:00 GMT") == AT_S


@pytest.mark.parametrize("zone", ["", "-0000"])
def test_a_date_without_a_zone_is_in_utc_wherever_the_machine_stands(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        assert instant_s(f"Fri, 15 Jan 2027 08:00:00 {zone}") == AT_S
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_notice_whose_time_passed_long_ago_still_is_the_same_one() -> None:
    action = Page('{"action": "terminate", "time": "2027-01-15T08:02:00Z"}', AT_S + 4000)
    assert updated(INTERRUPTED, action, NONE, UPTIME_S + 4000) == INTERRUPTED


def test_a_recommendation_stays() -> None:
    assert updated(RECOMMENDED, NONE, NONE, UPTIME_S) == RECOMMENDED
    both = updated(RECOMMENDED, page('{"action": "terminate"}'), NONE, UPTIME_S)
    assert updated(both, NONE, NONE, UPTIME_S).rebalance == RECOMMENDED.rebalance


class Market:
    """A metadata service with a test's pages; `asked` names every page that was requested."""

    def __init__(self, **pages: str) -> None:
        self.pages = pages
        self.is_cut = False
        self.asked: list[str] = []
        self.slept: list[float] = []

    def page(self, name: str) -> Page:
        self.asked.append(name)
        if self.is_cut:
            raise OSError("no route to host")
        return Page(self.pages.get(name), AT_S)

    def asker(self, *, rounds: int) -> SpotMarket:
        """The asker; it raises EOFError after so many pauses."""

        def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.is_cut = False
            if len(self.slept) == rounds:
                raise EOFError

        return SpotMarket(self.page, lambda: UPTIME_S, sleep, SpotNotices())


@pytest.mark.parametrize("kind", ["on-demand", "scheduled", "capacity-block\n"])
def test_a_machine_on_demand_asks_once_and_never_again(kind: str) -> None:
    market = Market(**{MARKET: kind})
    market.asker(rounds=1).listen()
    assert (market.asked, market.slept) == ([MARKET], [])


@pytest.mark.parametrize("odd", ["", "<html>busy</html>", "SPOT?", None])
def test_an_answer_that_is_no_market_is_asked_for_again(odd: str | None) -> None:
    market = Market(**({} if odd is None else {MARKET: odd}))
    asker = market.asker(rounds=2)
    with pytest.raises(EOFError):
        asker.listen()
    assert (market.asked, market.slept) == ([MARKET, MARKET], [RETRY_S, RETRY_S])
    market.pages = {MARKET: "spot", ACTION: '{"action": "terminate", "time": "2027-01-15T08:02:00Z"}'}
    asker.look()
    assert asker.notices == INTERRUPTED


def test_a_spot_machine_asks_for_both_notices_every_five_seconds() -> None:
    market = Market(**{MARKET: "spot\n", ACTION: '{"action": "terminate", "time": "2027-01-15T08:02:00Z"}'})
    asker = market.asker(rounds=2)
    with pytest.raises(EOFError):
        asker.listen()
    assert market.asked == [MARKET, ACTION, REBALANCE, ACTION, REBALANCE]
    assert (market.slept, asker.notices) == ([POLL_S, POLL_S], INTERRUPTED)


def test_where_the_metadata_service_is_cut_off_it_is_asked_seldom_and_nothing_is_known() -> None:
    market = Market(**{MARKET: "spot"})
    market.is_cut = True
    asker = market.asker(rounds=2)
    with pytest.raises(EOFError):
        asker.listen()
    assert (market.slept, asker.notices) == ([RETRY_S, POLL_S], SpotNotices())


def test_what_was_known_holds_while_the_metadata_service_is_cut_off() -> None:
    market = Market()
    asker = market.asker(rounds=1)
    asker.is_spot, asker.notices, market.is_cut = True, INTERRUPTED, True
    with pytest.raises(EOFError):
        asker.listen()
    assert asker.notices == INTERRUPTED
