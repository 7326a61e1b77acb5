"""A stack's config keeps what a person wrote, to the letter, while clusterctl sets and removes its own values."""

from __future__ import annotations

import pytest
import yaml
from clusterctl.engine.stack_config import config_values, secrets_provider, with_values
from hypothesis import given
from hypothesis import strategies as st

WRITTEN = """# who wrote this, and why
config:
  aws:region: us-west-2   # the only one we may use
  clusterctl:nodes: "4"
  clusterctl:zone: us-west-2b
encryptionsalt: v1:abc=
"""
KEYS = st.sampled_from(["nodes", "ledger", "down", "run", "zone"])
VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=40)


def test_other_lines_and_comments_stay() -> None:
    text = with_values(WRITTEN, {"run": "2"})
    assert text == WRITTEN.replace("config:\n", 'config:\n  clusterctl:run: "2"\n')


def test_a_value_is_replaced_not_doubled() -> None:
    text = with_values(WRITTEN, {"nodes": "6"})
    assert config_values(text)["nodes"] == "6"
    assert text.count("clusterctl:nodes") == 1


def test_a_removed_value_is_gone() -> None:
    assert config_values(with_values(WRITTEN, {"zone": None})) == {"nodes": "4"}


def test_nothing_to_change_changes_nothing() -> None:
    assert with_values(WRITTEN, {"nodes": "4", "ledger": None}) == WRITTEN


def test_an_empty_file_gets_its_first_value() -> None:
    assert config_values(with_values("", {"down": "true"})) == {"down": "true"}


def test_the_last_value_takes_the_section_along_and_no_comment() -> None:
    rest = "encryptionsalt: v1:x  # of this stack\n"
    assert with_values(f'config:\n  clusterctl:run: "2"\n{rest}', {"run": None}) == rest


def test_another_way_of_writing_yaml_is_read_all_the_same() -> None:
    text = with_values("config: {'clusterctl:nodes': 4, 'aws:region': us-west-2}\n", {"nodes": "6"})
    assert yaml.safe_load(text)["config"] == {"aws:region": "us-west-2", "clusterctl:nodes": "6"}


def test_a_ledger_is_one_line_of_the_file() -> None:
    ledger = '[{"slot":0,"started_at":"2026-11-21T10:00:00+00:00"}]'
    text = with_values(WRITTEN, {"ledger": ledger})
    assert config_values(text)["ledger"] == ledger
    assert len(text.splitlines()) == len(WRITTEN.splitlines()) + 1


@given(st.dictionaries(KEYS, st.none() | VALUES))
def test_what_is_set_is_read_back(changes: dict[str, str | None]) -> None:
    before = config_values(WRITTEN)
    after = config_values(with_values(WRITTEN, changes))
    assert after == {key: value for key, value in {**before, **changes}.items() if value is not None}
    assert yaml.safe_load(with_values(WRITTEN, changes))["encryptionsalt"] == "v1:abc="


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        ("", None),
        ("config:\n  a:b: c\n", None),
        ("secretsprovider: awskms://alias/train\nconfig:\n  a:b: c\n", "awskms://alias/train"),
    ],
)
def test_what_encrypts_secrets_is_read(text: str, provider: str | None) -> None:
    assert secrets_provider(text) == provider
