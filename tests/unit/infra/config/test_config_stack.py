"""What a stack's Pulumi config says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusterctl_infra.config.stack import read_stack_settings, stack_settings
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.ledger import Ledger, Span, ledger_to_json

LEDGER = Ledger(
    spans=(
        Span(
            slot=0,
            instance_id="i-0a1b2c3d4e5f67890",
            started_at=datetime(2026, 11, 21, 10, 0, tzinfo=UTC),
            ended_at=None,
            price_usd_per_hour=55.04,
        ),
    )
)


def test_an_empty_config_is_the_first_run() -> None:
    settings = stack_settings({})
    assert (settings.overrides, settings.ledger, settings.down, settings.run) == ({}, Ledger(), False, 1)


def test_what_is_not_a_setting_is_an_override() -> None:
    settings = stack_settings({"nodes": "8", "down": "true", "run": "2", "ledger": json.dumps(ledger_to_json(LEDGER))})
    assert (settings.overrides, settings.ledger, settings.down, settings.run) == ({"nodes": "8"}, LEDGER, True, 2)


def test_type_and_zone_that_were_chosen_and_the_account_are_settings() -> None:
    chosen = '{"instance_type":"p5.48xlarge","zone":"us-west-2b"}'
    settings = stack_settings({"chosen": chosen, "account": "012345678901"})
    assert settings.chosen is not None
    assert (settings.chosen.instance_type, settings.zone) == ("p5.48xlarge", "us-west-2b")
    assert (settings.account, settings.overrides) == ("012345678901", {})
    assert (stack_settings({}).zone, stack_settings({}).account) == (None, None)


def test_a_moved_end_is_a_setting() -> None:
    settings = stack_settings({"until": "2026-11-21T16:00:00+00:00", "extended-from": "2026-11-21T14:00:00Z"})
    assert settings.until == datetime(2026, 11, 21, 16, 0, tzinfo=UTC)
    assert settings.extended_from == datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
    assert settings.overrides == {}


def test_ranks_that_were_ordered_once_are_a_setting() -> None:
    settings = stack_settings({"slot-ranks": "[0, 2, 1]", "ranks": "topology"})
    assert (settings.slot_ranks, settings.overrides) == ((0, 2, 1), {"ranks": "topology"})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ledger", "{"),
        ("ledger", "7"),
        ("ledger", '[{"slot": 0}]'),
        ("down", "yes"),
        ("down", ""),
        ("account", "12345678901"),
        ("account", "12345678901x"),
        ("chosen", "p5.48xlarge"),
        ("chosen", '{"instance_type": 7, "zone": "us-west-2b"}'),
        ("chosen", '{"instance_type": null}'),
        ("slot-ranks", "0,1"),
        ("slot-ranks", "[1, 0]"),
        ("slot-ranks", "[0, 0]"),
        ("slot-ranks", "{}"),
        ("until", "17:30"),
        ("until", "2026-11-21T16:00:00"),
        ("extended-from", "before"),
        ("run", "0"),
        ("run", "-1"),
        ("run", "two"),
        ("run", "9" * 5000),
        ("run", "\u0663"),
    ],
)
def test_a_setting_that_is_none_names_its_key_and_the_way_out(key: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stack_settings({key: text})
    assert f"clusterctl:{key}" in caught.value.message
    assert caught.value.hint == f"pulumi config rm clusterctl:{key}"


def test_a_stack_without_a_config_file_has_empty_settings(tmp_path: Path) -> None:
    assert read_stack_settings(tmp_path, "dev") == stack_settings({})


def test_only_the_keys_of_clusterctl_are_read(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "encryptionsalt: v1:abc=\nconfig:\n  aws:region: us-west-2\n  other:x:\n    secure: v1:xyz\n"
        f"  clusterctl:nodes: 6\n  clusterctl:down: true\n  clusterctl:ledger: '{json.dumps(ledger_to_json(LEDGER))}'\n"
    )
    settings = read_stack_settings(tmp_path, "dev")
    assert (settings.overrides, settings.down, settings.ledger) == ({"nodes": "6"}, True, LEDGER)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("config: [\n", "line 2: not YAML"),
        ("config: x\n", "config is not a mapping"),
        ("config:\n  clusterctl:nodes:\n    secure: abc\n", "clusterctl:nodes is not a plain value"),
        ("config:\n  clusterctl:down: maybe\n", "clusterctl:down: 'maybe': write true or false"),
    ],
)
def test_a_broken_config_file_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_stack_settings(tmp_path, "dev")
    assert caught.value.message.startswith(str(path))
    assert sentence in caught.value.message
