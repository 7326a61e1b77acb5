"""Processor seconds of the integration tests, summed for each file."""

from __future__ import annotations

from tests.integration.processor_times import by_file, spent_s


def test_seconds_of_a_files_tests_are_one_sum_and_the_dearest_file_is_first() -> None:
    spent = [("a.py::test_1", 1.0), ("b.py::test_1[x::y]", 4.0), ("a.py::test_2", 2.5)]
    assert by_file(spent) == [("b.py", 1, 4.0), ("a.py", 2, 3.5)]
    assert by_file([]) == []


def test_what_this_process_does_counts() -> None:
    before = spent_s()
    while spent_s() == before:
        pass
    assert spent_s() > before
