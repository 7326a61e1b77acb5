"""docs/rehearsal.md names every setting of rehearsal.yaml, and every state that simulated GPUs can have."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import yaml
from clusterctl_rehearsal.gpu.simulate_gpus import STATES
from clusterctl_rehearsal.region.settings import Settings, settings_from_rows

PAGE = (Path(__file__).parents[3] / "docs" / "rehearsal.md").read_text(encoding="utf-8")
ROWS = {key: yaml.safe_load(value) for key, value in re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", PAGE, re.MULTILINE)}


def test_every_setting_is_there_and_no_other() -> None:
    assert list(ROWS) == [each.name for each in dataclasses.fields(Settings)]


def test_what_a_setting_is_without_being_written_is_what_the_page_says() -> None:
    assert settings_from_rows(ROWS, source="docs/rehearsal.md") == Settings()


def test_every_state_of_a_simulated_gpu_is_there() -> None:
    (states,) = re.findall(r"simulate-gpus (\S+) \[", PAGE)
    assert set(states.split("|")) == set(STATES)
