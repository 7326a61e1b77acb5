"""A rehearsal's engine sees no way to AWS; a real one sees what the person has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from clusterctl.engine import package_list
from clusterctl.engine.environment import (
    NOWHERE,
    engine_environment,
    find_engine,
    real_variables,
    rehearsal_variables,
)
from clusterctl.engine.stack import Stack
from clusterctl.home import Home
from clusterctl_infra.errors import EngineError
from clusterctl_infra.region_keys import KeyPair, RegionAccess
from hypothesis import given
from hypothesis import strategies as st

HOME = Home(path=Path("/home/of/a/test"))
LEAKS = {
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_SECRET_ACCESS_KEY": "real",
    "AWS_SESSION_TOKEN": "real",
    "AWS_PROFILE": "prod",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/x",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
    "AWS_ENDPOINT_URL_EC2": "https://ec2.us-west-2.amazonaws.com",
    "BOTO_CONFIG": "/etc/boto.cfg",
    "PULUMI_DEBUG_PROVIDERS": "aws:1234",
    "PULUMI_HOME": "/real/home",
}


def rehearsed(base: dict[str, str]) -> dict[str, str]:
    return rehearsal_variables(base, home=HOME, nonce="n", backend_url=None)


def test_no_credential_of_the_person_reaches_a_rehearsal() -> None:
    env = rehearsed({**LEAKS, "PATH": "/bin"})
    real = set(LEAKS.values())
    assert not real & set(env.values())
    assert env["AWS_CONFIG_FILE"] == env["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert env["AWS_EC2_METADATA_DISABLED"] == "true"
    assert env["AWS_ENDPOINT_URL"] == NOWHERE


def test_no_plugin_from_outside_answers_in_a_rehearsal() -> None:
    env = rehearsed(dict(LEAKS))
    assert env["PULUMI_IGNORE_AMBIENT_PLUGINS"] == "true"
    assert env["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert env["PULUMI_HOME"] == str(HOME.rehearsal_dir / "pulumi")
    assert "PULUMI_DEBUG_PROVIDERS" not in env


@given(
    st.dictionaries(
        st.sampled_from(sorted(LEAKS)) | st.from_regex(r"AWS_[A-Z_]{1,12}", fullmatch=True), st.just("REAL")
    )
)
def test_whatever_is_called_aws_is_ours_in_a_rehearsal(base: dict[str, str]) -> None:
    assert "REAL" not in rehearsed(base).values()


def test_a_real_run_keeps_credentials_and_may_fetch_the_real_plugin() -> None:
    env = real_variables({**LEAKS, "PATH": "/usr/bin"})
    assert env["AWS_PROFILE"] == "prod"
    assert "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION" not in env
    assert env["PATH"].endswith(os.pathsep + "/usr/bin")


def test_the_region_is_reached_past_a_proxy() -> None:
    assert rehearsed({"NO_PROXY": "intranet"})["NO_PROXY"] == "intranet,127.0.0.1,localhost"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path / "home")


def stack(folder: Path, *, is_rehearsal: bool) -> Stack:
    return Stack(directory=folder, project="train", name="dev", is_rehearsal_project=is_rehearsal)


def test_a_rehearsal_stack_shares_its_state_with_plain_pulumi(tmp_path: Path, home: Home) -> None:
    made = engine_environment(
        stack(tmp_path, is_rehearsal=True), rehearse=False, home=home, environ={"PATH": os.environ["PATH"]}
    )
    assert made.rehearsal
    assert "PULUMI_BACKEND_URL" not in made.env
    assert made.config_file == tmp_path / "Pulumi.dev.yaml"


def test_a_real_stack_is_rehearsed_in_a_state_of_its_own(tmp_path: Path, home: Home) -> None:
    made = engine_environment(
        stack(tmp_path, is_rehearsal=False), rehearse=True, home=home, environ={"PATH": os.environ["PATH"]}
    )
    assert made.env["PULUMI_BACKEND_URL"] == f"file://{home.rehearsal_dir / 'state'}"
    assert made.config_file.is_relative_to(home.path)
    assert not (tmp_path / "Pulumi.dev.yaml").exists()


def test_the_stand_in_is_the_only_aws_in_a_rehearsals_plugins(tmp_path: Path, home: Home) -> None:
    engine_environment(
        stack(tmp_path, is_rehearsal=False), rehearse=True, home=home, environ={"PATH": os.environ["PATH"]}
    )
    plugins = sorted((home.rehearsal_dir / "pulumi" / "plugins").glob("*/pulumi-resource-*"))
    assert [path.name for path in plugins] == ["pulumi-resource-aws", "pulumi-resource-clusterctl"]
    assert "clusterctl_rehearsal.plugin" in plugins[0].read_text()
    assert all(os.access(path, os.X_OK) for path in plugins)


def test_the_engine_keeps_no_log_of_a_rehearsal(tmp_path: Path, home: Home) -> None:
    logs = home.rehearsal_dir / "pulumi" / "logs"
    logs.mkdir(parents=True)
    (logs / "pulumi-20261126T101513-77.log").write_text("of a run before")
    for _ in range(2):
        engine_environment(
            stack(tmp_path, is_rehearsal=True), rehearse=False, home=home, environ={"PATH": os.environ["PATH"]}
        )
        assert logs.is_file()


def test_a_real_stack_is_run_as_the_person_would(tmp_path: Path, home: Home) -> None:
    made = engine_environment(
        stack(tmp_path, is_rehearsal=False), rehearse=False, home=home, environ={"PATH": os.environ["PATH"]}
    )
    assert not made.rehearsal
    assert "PULUMI_HOME" not in made.env
    assert not home.path.exists()


def test_without_an_engine_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no pulumi") as refused:
        find_engine({"PATH": str(tmp_path)}, folder=tmp_path)
    assert refused.value.hint == "scripts/engine"


def test_the_engine_of_the_environment_comes_before_the_one_on_path(tmp_path: Path) -> None:
    for folder in (tmp_path / "beside", tmp_path / "path"):
        folder.mkdir()
        (folder / "pulumi").write_text("#!/bin/sh\n")
        (folder / "pulumi").chmod(0o755)
    environ = {"PATH": str(tmp_path / "path")}
    assert find_engine(environ, folder=tmp_path / "beside") == str(tmp_path / "beside" / "pulumi")
    assert find_engine(environ, folder=tmp_path) == str(tmp_path / "path" / "pulumi")


def test_a_rehearsals_engine_reaches_nobody_until_it_is_told_where(tmp_path: Path, home: Home) -> None:
    made = engine_environment(
        stack(tmp_path, is_rehearsal=True), rehearse=False, home=home, environ={"PATH": os.environ["PATH"]}
    )
    assert made.env["AWS_ENDPOINT_URL"] == NOWHERE
    keys = KeyPair(access_key_id="REHEARSALAAAAAAAAAAA", secret_access_key="of the region")
    env = made.at(RegionAccess(endpoint_url="http://127.0.0.1:4566", keys=keys)).env
    assert env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]) == ("REHEARSALAAAAAAAAAAA", "of the region")


def test_the_language_host_gets_a_python_that_answers_for_pip_unless_a_person_chose_one() -> None:
    chosen = Path(real_variables({})["PULUMI_PYTHON_CMD"])
    assert os.access(chosen, os.X_OK)
    assert chosen.parent == Path(package_list.__file__).parent
    assert real_variables({"PULUMI_PYTHON_CMD": "python3.12"})["PULUMI_PYTHON_CMD"] == "python3.12"
