"""What looks like a secret in an archive for somebody else."""

from __future__ import annotations

import json

import pytest
from clusterctl.bundle.secrets_out import secret_values, without_secrets

from tests.unit.cli.jobs.job_specs import spec


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"key AKIAABCDEFGHIJKLMNOP.", b"key ***."),
        (b"hf_abcdefghijklmnopqrst", b"***"),
        (b"url https://ada:hush@host/x", b"url https://ada:***@host/x"),
        (b"Authorization: Bearer abc.def", b"Authorization: Bearer ***"),
        (b'"api_key": "abcdef"', b'"api_key": "***"'),
        (b"PASSWORD=hush hush", b"PASSWORD=*** hush"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nmore", b"***\nmore"),
        (b"-----BEGIN PRIVATE KEY-----\ntorn", b"***"),
        (b"token count: 5, tokens=1000000, loss 0.1", b"token count: 5, tokens=1000000, loss 0.1"),
        (b"my value1 here", b"my *** here"),
    ],
)
def test_forms_of_secrets_are_replaced_and_the_rest_stays(text: bytes, shown: bytes) -> None:
    assert without_secrets(text, ["value1", "my"]) == shown


def test_each_line_of_a_secret_is_replaced_as_it_is_in_what_ranks_say() -> None:
    assert without_secrets(b"it said: second line", ["first line\nsecond line"]) == b"it said: ***"


def test_names_of_variables_and_flags_say_what_is_secret() -> None:
    words = ["train.py", "--api-key", "abcdef", "--token=ghijkl", "--tokenizer", "bert", "--password", "--verbose"]
    found = secret_values(spec(command=words, environment={"HF_TOKEN": "mnopqr", "EPOCHS": "3"}))
    assert sorted(found) == ["abcdef", "ghijkl", "mnopqr"]


def test_a_secret_may_begin_with_a_dash() -> None:
    found = secret_values(spec(command=["train.py", "--token=-ghijkl"], environment={"MY_KEY": "-abcdef"}))
    assert sorted(found) == ["-abcdef", "-ghijkl"]


def test_a_job_without_a_command_has_the_secrets_of_its_variables() -> None:
    assert secret_values(spec(command=[], launcher_options=[], environment={"MY_KEY": "abcdef"})) == ["abcdef"]


def test_a_secret_is_found_as_json_writes_it() -> None:
    secret = 'a"b\\c-\u00fc'
    for text in (json.dumps({"x": secret}), json.dumps({"x": secret}, ensure_ascii=False), f'{{"x": "{secret}"}}'):
        assert without_secrets(text.encode(), [secret]) == b'{"x": "***"}'


def test_a_value_that_is_no_text_ends_nothing() -> None:
    assert without_secrets(b"all of it", ["half \ud800 a letter"]) == b"all of it"
