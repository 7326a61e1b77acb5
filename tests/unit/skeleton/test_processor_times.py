"""Processor seconds of the integration tests, summed for each file."""

from __future__ import annotations

import os

import pytest

from tests.integration.processor_times import by_file, spent_s


def test_seconds_of_a_files_tests_are_one_sum_and_the_most_expensive_is_first() -> None:
    spent = [("a.py::test_1", 1.0), ("b.py::test_1[x::y]", 4.0), ("a.py::test_2", 2.5)]
    assert by_file(spent) == [("b.py", 1, 4.0), ("a.py", 2, 3.5)]
    assert by_file([]) == []


@pytest.mark.parametrize(
    ("spent", "seconds"),
    [((1.0, 0.0, 0.0, 0.0, 9.0), 1.0), ((0.5, 0.25, 2.0, 4.0, 100.0), 6.75), ((0.0, 0.0, 0.0, 0.0, 3.0), 0.0)],
)
def test_own_time_and_that_of_ended_children_counts_and_the_clock_does_not(
    spent: tuple[float, ...], seconds: float
) -> None:
    assert spent_s(os.times_result(spent)) == seconds
