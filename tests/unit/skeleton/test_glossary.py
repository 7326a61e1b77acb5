"""The glossary stays short, and each of its words means one thing."""

from __future__ import annotations

import re
from collections import Counter

import tree_rules

MOST_WORDS = 40


def words() -> list[str]:
    """The words of CONTRIBUTING.md's glossary, in its order."""
    text = (tree_rules.CHECKOUT / "CONTRIBUTING.md").read_text()
    section = text.partition("\n## Words\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)


def test_the_glossary_has_few_words() -> None:
    assert 10 < len(words()) <= MOST_WORDS


def test_no_word_stands_in_the_glossary_twice() -> None:
    assert [word for word, times in Counter(map(str.lower, words())).items() if times > 1] == []


def test_the_glossary_is_in_order_so_a_word_is_found() -> None:
    assert words() == sorted(words())
