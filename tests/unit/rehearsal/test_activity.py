"""A region without requests ends, and takes none from then on: whoever got an answer does not find it gone next."""

from __future__ import annotations

from clusterctl_rehearsal.server.activity import Activity

IDLE_S = 10.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def idle_for(seconds: float) -> tuple[Activity, Clock]:
    clock = Clock()
    activity = Activity(clock=clock)
    clock.now_s += seconds
    return activity, clock


def test_it_ends_when_the_last_request_is_long_ago_and_takes_none_from_then_on() -> None:
    activity, _ = idle_for(IDLE_S + 0.1)
    assert activity.is_idle(IDLE_S)
    assert activity.end_if_idle(IDLE_S)
    assert not activity.begin()
    assert activity.end_if_idle(IDLE_S)


def test_a_request_puts_off_the_end_from_when_it_was_answered() -> None:
    activity, clock = idle_for(IDLE_S + 0.1)
    assert activity.begin()
    clock.now_s += IDLE_S + 0.1
    assert not activity.end_if_idle(IDLE_S)  # it is under way
    activity.end()
    assert not activity.end_if_idle(IDLE_S)
    clock.now_s += IDLE_S + 0.1
    assert activity.end_if_idle(IDLE_S)


def test_two_requests_have_both_to_be_answered() -> None:
    activity, clock = idle_for(0.0)
    assert activity.begin()
    assert activity.begin()
    activity.end()
    clock.now_s += IDLE_S + 0.1
    assert not activity.is_idle(IDLE_S)
    activity.end()
    clock.now_s += IDLE_S + 0.1
    assert activity.is_idle(IDLE_S)
