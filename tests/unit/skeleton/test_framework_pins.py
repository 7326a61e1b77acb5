"""The frameworks of the launchers' own tests: pip is told each version, since it resolves nothing."""

from __future__ import annotations

from framework_packages import framework_pins


def test_every_package_has_one_version() -> None:
    packages = framework_pins()["packages"]
    assert set(packages) == {"accelerate", "deepspeed", "jax", "tensorflow"}
    for pinned in packages.values():
        assert {package.count("==") for package in pinned} == {1}
