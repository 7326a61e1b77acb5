"""What may name the image of a job, which image it is, and who logs in for it at which registry."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from clusterctl.jobs.images import registry_login, same_image
from clusterctl.jobs.spec import checked_image
from clusterctl.on_node.job.container import CLIENT_ENVIRONMENT
from clusterctl.on_node.job.image_pull import login_file, pull_command, registry_of
from clusterctl_infra.errors import ClusterctlError, UsageError
from hypothesis import given
from hypothesis import strategies as st


def test_an_image_that_differs_between_nodes_is_named_with_them() -> None:
    assert same_image("a:1", {0: "sha256:aa", 1: "sha256:aa"}) == "sha256:aa"
    with pytest.raises(
        ClusterctlError, match="a:1 is not the same image on all nodes: sha256:aa on 0-1; sha256:bb on 2"
    ):
        same_image("a:1", {0: "sha256:aa", 1: "sha256:aa", 2: "sha256:bb"})


@pytest.mark.parametrize("image", ["pytorch/pytorch:2.4", "nvcr.io/nvidia/pytorch:25.06-py3", "a@sha256:" + 64 * "0"])
def test_names_of_images_are_taken_as_engines_take_them(image: str) -> None:
    assert checked_image(image) == image


@given(st.text(max_size=40))
def test_no_name_of_an_image_is_a_flag_or_two_words(text: str) -> None:
    try:
        found = checked_image(text)
    except UsageError:
        return
    assert not found.startswith("-")
    assert set(found).isdisjoint(" \t\n'\"$;\\,=")


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("python:3.12", "docker.io"),
        ("ada/train:1", "docker.io"),
        ("nvcr.io/nvidia/pytorch:25.06-py3", "nvcr.io"),
        ("localhost/a:1", "localhost"),
        ("registry:5000/a/b@sha256:" + 64 * "0", "registry:5000"),
        ("1234.dkr.ecr.us-west-2.amazonaws.com/train:1", "1234.dkr.ecr.us-west-2.amazonaws.com"),
    ],
)
def test_a_login_is_for_the_registry_of_the_image_alone(image: str, registry: str) -> None:
    assert registry_of(image) == registry
    auths = json.loads(login_file(image, "$oauthtoken:a:b"))["auths"]
    assert registry in auths
    assert set(auths) - {registry} == ({"https://index.docker.io/v1/"} if registry == "docker.io" else set())
    assert {base64.b64decode(row["auth"]) for row in auths.values()} == {b"$oauthtoken:a:b"}


def test_each_engine_is_told_where_the_login_is_and_none_where_there_is_none() -> None:
    folder = Path("/run/logins/7")
    quiet, file = ["pull", "--quiet"], ["--authfile", "/run/logins/7/config.json"]
    assert pull_command("podman", "a:1", folder) == (["podman", *quiet, *file, "a:1"], CLIENT_ENVIRONMENT)
    docker = {**CLIENT_ENVIRONMENT, "DOCKER_CONFIG": "/run/logins/7"}
    assert pull_command("docker", "a:1", folder) == (["docker", *quiet, "a:1"], docker)
    assert pull_command("docker", "a:1", None) == (["docker", *quiet, "a:1"], CLIENT_ENVIRONMENT)


@pytest.mark.parametrize(
    ("value", "image", "message"),
    [
        (None, "a:1", "--registry-secret NGC: not in this computer's environment"),
        ("hunter2", "a:1", "--registry-secret NGC: its value is not USER:PASSWORD"),
        (":hunter2", "a:1", "--registry-secret NGC: its value is not USER:PASSWORD"),
        ("ada:hunter2", None, "--registry-secret NGC is for the registry of --image, and there is none"),
    ],
)
def test_a_login_that_cannot_be_meant_is_told_without_its_value(
    monkeypatch: pytest.MonkeyPatch, value: str | None, image: str | None, message: str
) -> None:
    monkeypatch.delenv("NGC", raising=False)
    if value is not None:
        monkeypatch.setenv("NGC", value)
    with pytest.raises(UsageError) as e:
        registry_login("NGC", image)
    assert e.value.message == message
    assert "hunter2" not in f"{e.value.message} {e.value.hint}"
