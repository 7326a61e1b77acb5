"""A YAML file as text leaves with lines: what is read, and what is refused with its line."""

from __future__ import annotations

import pytest
from clusterctl_infra.config.document import NODE_LIMIT, read_document
from hypothesis import given
from hypothesis import strategies as st


def only_problem(text: str) -> str:
    (problem,) = read_document(text).problems
    return f"{problem.line}: {problem.message}"


def test_every_key_and_entry_has_its_line() -> None:
    read = read_document("a: 1\nb:\n  - x\n  - c: 2\n")
    assert read.tree == {"a": "1", "b": ["x", {"c": "2"}]}
    assert read.lines == {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4}


def test_an_alias_stands_for_what_it_names() -> None:
    read = read_document("a: &x [1]\nb: *x\n")
    assert (read.tree, read.problems) == ({"a": ["1"], "b": ["1"]}, ())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\na: 2\n", "2: written twice (first in line 1)"),
        ("a: 1\n? [x]\n: 2\n", "2: a key is a word, not a list or mapping"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "3: merge keys are not read; write the keys out"),
        ("a: !Ref b\n", "1: tags are not read (!Ref); write a plain value"),
        ("a: !!python/name:os.system x\n", "1: tags are not read (tag:yaml.org,2002:python/name:os.system)"),
        ("a: !x [1]\n", "1: tags are not read (!x)"),
        ("a: &x [*x]\n", "1: unfolds to too much (an alias that contains itself?)"),
        ("a: 1\n---\nb: 2\n", "2: not YAML: expected a single document in the stream, but found another document"),
        ("a: *nobody\n", "1: not YAML: found undefined alias 'nobody'"),
        ("a: 'open\n", "2: not YAML: while scanning a quoted scalar, found unexpected end of stream"),
        (
            "a:\n\t- b\n",
            "2: not YAML: while scanning for the next token, found character '\\t' that cannot start any token",
        ),
        ("a: \0\n", "1: a character that YAML does not allow (code 0)"),
    ],
)
def test_what_is_not_read_is_refused_with_its_line(text: str, sentence: str) -> None:
    assert only_problem(text).startswith(sentence)


def test_a_file_that_unfolds_a_billionfold_is_refused_soon() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert "unfolds to too much" in only_problem("\n".join(lines))
    assert NODE_LIMIT < 10**5


def test_a_file_nested_too_deeply_is_refused() -> None:
    assert only_problem("[" * 5000) == "None: nested too deeply to be read"


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    read = read_document(text)
    assert all(problem.message for problem in read.problems)


@given(st.text(alphabet=":-[]{},&*!|>'\"%@` \n\tab01~<?#.\\xu", max_size=60))
def test_any_text_made_of_yaml_s_own_signs_is_read_without_an_exception(text: str) -> None:
    read_document(text)


def test_a_place_that_the_file_does_not_have_is_told_at_what_is_around_it() -> None:
    read = read_document("a: 1\nb:\n  - c: 1\n")
    assert [read.line_of(path) for path in (("b", 0, "c"), ("b", 0, "d"), ("b", 7), ("z",), ())] == [
        3,
        3,
        2,
        None,
        None,
    ]
