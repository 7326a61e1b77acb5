"""Packages are listed from the folders of their metadata, in the form that Pulumi's language host reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.package_list import packages


@pytest.mark.parametrize(
    ("entry", "name", "version"),
    [
        ("pulumi_aws-7.51.1.dist-info", "pulumi-aws", "7.51.1"),
        ("pulumi-3.250.0.dist-info", "pulumi", "3.250.0"),
        ("Pulumi_Random-4.16.0a1.dist-info", "pulumi-random", "4.16.0a1"),
        ("ruamel.yaml-0.18.6.dist-info", "ruamel-yaml", "0.18.6"),
        ("PyJWT-2.6.0.egg-info", "pyjwt", "2.6.0"),
        ("fuse_python-1.0.5-py3.11.egg-info", "fuse-python", "1.0.5"),
    ],
)
def test_a_package_is_named_by_its_folder(tmp_path: Path, entry: str, name: str, version: str) -> None:
    (tmp_path / entry).mkdir()
    assert list(packages([str(tmp_path)])) == [{"name": name, "version": version, "location": str(tmp_path)}]


def test_what_is_no_package_is_left_out(tmp_path: Path) -> None:
    for entry in ("pulumi_aws", "~ulumi-3.1.0.dist-info.old", "cloud_init.egg-info", "__pycache__"):
        (tmp_path / entry).mkdir()
    assert list(packages([str(tmp_path), str(tmp_path / "absent.zip")])) == []


def test_of_two_the_one_that_is_imported_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, version in ((first, "2.0"), (second, "1.0")):
        (folder / f"pulumi_aws-{version}.dist-info").mkdir(parents=True)
    assert [row["version"] for row in packages([str(first), str(second)])] == ["2.0"]
