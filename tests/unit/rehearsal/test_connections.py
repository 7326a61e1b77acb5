"""Connections that have not proved whose they are, without any socket."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from clusterctl_rehearsal.server.connections import SILENT_S, SPEAKING_S, UnprovenConnections
from clusterctl_rehearsal.server.http import content_length


@dataclass(eq=False)
class Socket:
    """Knows whether it was ended."""

    ended: list[int] = field(default_factory=list)

    def shutdown(self, how: int, /) -> None:
        self.ended.append(how)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_flood_of_silent_connections_holds_a_bounded_number_of_places(clock: Clock) -> None:
    unproven = UnprovenConnections(limit=4, clock=clock)
    flood = [Socket() for _ in range(100)]
    for connection in flood:
        unproven.admit(connection)
        clock.now += SILENT_S
    assert len(unproven) == 4
    assert [bool(connection.ended) for connection in flood] == [True] * 96 + [False] * 4


def test_who_says_nothing_goes_before_who_speaks(clock: Clock) -> None:
    unproven = UnprovenConnections(limit=2, clock=clock)
    speaking, silent, new = Socket(), Socket(), Socket()
    unproven.admit(speaking)
    unproven.has_spoken(speaking)
    unproven.admit(silent)
    clock.now += SILENT_S
    unproven.admit(new)
    assert (speaking.ended, bool(silent.ended), new.ended) == ([], True, [])


def test_who_speaks_and_never_comes_to_an_end_goes_too(clock: Clock) -> None:
    unproven = UnprovenConnections(limit=1, clock=clock)
    speaking = Socket()
    unproven.admit(speaking)
    unproven.has_spoken(speaking)
    clock.now += SPEAKING_S
    unproven.admit(Socket())
    assert speaking.ended


def test_a_connection_that_proved_whose_it_is_takes_no_place_and_is_never_closed(clock: Clock) -> None:
    unproven = UnprovenConnections(limit=1, clock=clock)
    for _ in range(3):
        proved = Socket()
        unproven.admit(proved)
        unproven.forget(proved)
        clock.now += 1000
        assert len(unproven) == 0
        assert not proved.ended


@pytest.mark.parametrize(
    ("text", "length"),
    [(None, 0), ("0", 0), ("17", 17), ("", None), ("-1", None), ("x", None), ("²", None), ("1e3", None)],
)
def test_the_length_of_a_body_is_a_plain_number(text: str | None, length: int | None) -> None:
    assert content_length(text) == length
