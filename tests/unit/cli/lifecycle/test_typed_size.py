"""A number of nodes that is refused is named by the place where a person wrote it: the flag, or the stack's config."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.lifecycle.intent import read_intent
from clusterctl.lifecycle.up_request import naming_the_flag
from clusterctl_infra.errors import ConfigError

CLUSTER = "name: train\nregion: us-west-2\nnodes: 2\ninstance_type: p5.48xlarge\naccess: {mode: private}\n"


@pytest.mark.parametrize(
    ("nodes", "config", "prefix"),
    [
        (99_999, "", "  --nodes: "),
        (None, "config:\n  clusterctl:nodes: '99999'\n", "  config clusterctl:nodes: "),
    ],
)
def test_a_refused_size_is_named_by_the_flag_or_the_config_that_has_it(
    tmp_path: Path, nodes: int | None, config: str, prefix: str
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    with pytest.raises(ConfigError) as refused, naming_the_flag(nodes):
        read_intent(stack, config, nodes=nodes)
    assert [problem[: len(prefix)] for problem in refused.value.problems] == [prefix]
