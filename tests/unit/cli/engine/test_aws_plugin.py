"""Which versions of the AWS plugin the engine lists."""

from __future__ import annotations

import json

import pytest
from clusterctl.engine.aws_plugin import versions_in


def test_only_the_resource_plugin_called_aws_counts() -> None:
    rows = [
        ("aws", "resource", "7.51.1"),
        ("aws", "analyzer", "1"),
        ("awsx", "resource", "2"),
        ("aws", "resource", "7"),
    ]
    text = json.dumps([{"name": name, "kind": kind, "version": version} for name, kind, version in rows])
    assert versions_in(text) == {"7.51.1", "7"}
    assert versions_in("[]") == frozenset()


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", "warning: x"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a list of plugins|Expecting value"):
        versions_in(text)
