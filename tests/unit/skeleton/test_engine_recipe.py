"""The recipe for the engine: one version everywhere, a module that builds it, an archive of any shape."""

from __future__ import annotations

import io
import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import go_modules
import pulumi_engine
import pulumi_release
import pytest

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def versions() -> dict[str, Any]:
    engine: dict[str, Any] = tomllib.loads((CHECKOUT / "scripts" / "versions.toml").read_text())["engine"]
    return engine


@pytest.mark.parametrize("place", ["pyproject.toml", "constraints.txt"])
def test_the_sdk_has_the_version_of_the_engine(versions: dict[str, Any], place: str) -> None:
    pins = re.findall(r"\bpulumi==([\d.]+)", (CHECKOUT / place).read_text())
    assert pins == [versions["version"]]


def test_the_module_that_builds_the_engine_names_versions_and_replacements(
    tmp_path: Path, versions: dict[str, Any]
) -> None:
    folder = go_modules.write_module(tmp_path / "m", {"example.org/a": "1.2.3"}, {"b": "c v1"}, versions)
    assert (folder / "go.mod").read_text().splitlines() == [
        "module clusterctl.invalid/engine",
        f"go {versions['modules']['go']}",
        "require example.org/a v1.2.3",
        "replace b => c v1",
    ]


@pytest.mark.parametrize("folder", ["pulumi/", "pulumi/bin/", ""])
def test_a_release_is_unpacked_flat_and_without_what_is_not_a_program(tmp_path: Path, folder: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in (f"{folder}pulumi", f"{folder}pulumi-language-python", "README.md", "../../pulumi-escape"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
    packed.seek(0)
    target = tmp_path / "engine"
    target.mkdir()
    pulumi_release.unpack(packed, target)
    assert sorted(path.name for path in target.iterdir()) == ["pulumi", "pulumi-escape", "pulumi-language-python"]
    assert not list(tmp_path.glob("pulumi*"))


@pytest.mark.parametrize(
    ("text", "version"),
    [("3.250.0", (3, 250, 0)), ("v3.300.1", (3, 300, 1)), ("3.251.0-alpha.1", (3, 251, 0))],
)
def test_versions_compare_by_number(text: str, version: tuple[int, ...]) -> None:
    assert pulumi_engine.parse(text) == version


def test_a_checkout_with_a_blank_in_its_name_is_quoted() -> None:
    text = pulumi_engine.wrapper_text("a=@CHECKOUT@ b=@ENGINE@", checkout=Path("/a b"), engine=Path("/e"))
    assert text == "a='/a b' b=/e"


def test_the_lock_of_the_cache_is_its_owners_alone_also_where_an_older_one_was_not(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    lock.touch(mode=0o644)
    with pulumi_engine.locked(tmp_path):
        assert lock.stat().st_mode & 0o777 == 0o600
