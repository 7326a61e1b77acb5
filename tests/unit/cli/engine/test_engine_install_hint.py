"""Without an engine, the command that is named exists where the person is."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from clusterctl.engine.environment import engine_hint


def test_in_a_checkout_it_is_the_checkouts_own_script_from_any_folder(tmp_path: Path) -> None:
    script = tmp_path / "a checkout" / "scripts" / "engine"
    script.parent.mkdir(parents=True)
    script.touch()
    assert engine_hint(tmp_path / "a checkout", folder=tmp_path / "a checkout") == "scripts/engine"
    assert engine_hint(tmp_path / "a checkout", folder=tmp_path) == f"'{script}'"
    assert engine_hint().endswith("scripts/engine")


def test_without_one_it_is_pulumis_installer_with_the_version_of_the_sdk(tmp_path: Path) -> None:
    assert engine_hint(tmp_path) == f"curl -fsSL https://get.pulumi.com | sh -s -- --version {version('pulumi')}"
