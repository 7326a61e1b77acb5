"""What an engine says of an image, as docker and podman word it."""

from __future__ import annotations

import pytest
from clusterctl.on_node.job.image_pull import is_absent


@pytest.mark.parametrize(
    ("stderr", "absent"),
    [
        (b"Error response from daemon: No such image: a:1\n", True),
        (b"Error: a:1: image not known\n", True),
        (b"Cannot connect to the Docker daemon at unix:///var/run/docker.sock\n", False),
        (b"", False),
    ],
    ids=["docker", "podman", "an engine that does not work", "silence"],
)
def test_an_image_is_pulled_only_where_the_engine_says_that_it_is_not_there(stderr: bytes, absent: bool) -> None:
    assert is_absent(stderr) is absent
