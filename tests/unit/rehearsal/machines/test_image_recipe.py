"""The base image's recipe."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import cloud_init_stage
from clusterctl_rehearsal.machines.image import _build_lock
from clusterctl_rehearsal.machines.recipe import (
    ImageRecipe,
    build_argv,
    failure_reason,
    first_uri,
    is_sources_text,
    usable_apt_options,
)

SOURCES = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n"
NAME = "usr/bin/cloud-init"
RECIPE = ImageRecipe(suite="bookworm", architecture="x86_64", sources=SOURCES)


def test_equal_recipes_name_the_same_image() -> None:
    assert RECIPE.digest == dataclasses.replace(RECIPE).digest


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(RECIPE, suite="trixie"),
        dataclasses.replace(RECIPE, sources="deb http://x y z"),
        dataclasses.replace(RECIPE, packages=("systemd",)),
        dataclasses.replace(RECIPE, layout=2),
        dataclasses.replace(RECIPE, files=()),
        dataclasses.replace(RECIPE, masked_generators=()),
    ],
)
def test_every_change_of_the_recipe_names_another_image(other: ImageRecipe) -> None:
    assert other.digest != RECIPE.digest


def test_the_image_has_what_nodes_need() -> None:
    assert {"nftables", "cloud-init", "openssh-server", "python3"} <= set(RECIPE.packages)


def test_the_build_dies_with_its_caller_and_mounts_nothing_outside() -> None:
    argv = build_argv(RECIPE, target="/cache/root", sources_file="/cache/base.sources")
    assert argv[:3] == ["setpriv", "--pdeathsig", "KILL"]
    assert {"--mount", "--pid", "--kill-child"} <= set(argv)
    assert argv[-3:] == ["bookworm", "/cache/root", "/cache/base.sources"]


def test_only_apt_settings_that_reach_the_sources_are_passed_on() -> None:
    dump = (
        'Acquire "";\nAcquire::Languages "none";\nAcquire::Check-Date "false";\n'
        'Acquire::http "";\nAcquire::http::Proxy "http://proxy:3128";\n'
    )
    assert usable_apt_options(dump) == ('Acquire::Check-Date "false"', 'Acquire::http::Proxy "http://proxy:3128"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [(SOURCES, True), ("deb http://x bookworm main\n", True), ("# deb http://x y\n\n", False), ("", False)],
)
def test_a_file_without_a_source_is_passed_over(text: str, expected: bool) -> None:
    assert is_sources_text(text) is expected


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("Err:1 http://deb.debian.org bookworm\n  Temporary failure resolving 'deb.debian.org'\n", "was not reached"),
        ("tar: write error: No space left on device\nE: x", "the disk is full"),
        ("I: working\nE: unknown suite\n", "E: unknown suite"),
        ("", "mmdebstrap failed"),
    ],
)
def test_a_failed_build_is_told_in_one_sentence(log: str, reason: str) -> None:
    assert reason in failure_reason(log, SOURCES)


def test_the_source_that_was_not_reached_is_named() -> None:
    assert first_uri(SOURCES) == "http://deb.debian.org/debian"


def test_both_programs_of_cloud_init_mean_the_same_socket_and_stages() -> None:
    """They are whole programs, each for its own interpreter, and neither can import the other."""
    asks, answers = (dict(RECIPE.files)[path] for path in (NAME, cloud_init_stage.PROGRAM[1:]))
    for text in (asks, answers):
        assert text.startswith("#!/usr/bin/python3")
        compile(text, "cloud-init", "exec")
    assert constants(answers)["SOCKET"] == f"Path('{cloud_init_stage.SOCKET}')"
    assert constants(answers)["NAME"] == f"'/{NAME}'"
    assert constants(answers)["LAST_STAGE"] == str(cloud_init_stage.STAGES[-1])


def constants(program: str) -> dict[str, str]:
    """What a program's top level assigns to names, as it stands there."""
    found = [each for each in ast.parse(program).body if isinstance(each, ast.Assign)]
    return {ast.unparse(each.targets[0]): ast.unparse(each.value) for each in found}


def test_the_lock_of_the_image_is_its_owners_alone_also_where_an_older_one_was_not(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch(mode=0o644)
    with _build_lock(tmp_path, lambda message: None):
        assert lock.stat().st_mode & 0o777 == 0o600
