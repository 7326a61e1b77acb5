"""A home on a file system that locks no files: a cluster comes up, is changed and ends all the same."""

from __future__ import annotations

from tests.integration.refused_calls import without
from tests.integration.rehearsed import CLUSTERCTL, Done, Rehearsed, run

NO_LOCKS = "has no locks: only Pulumi's own lock of the stack keeps a clusterctl on another computer from changing"


def test_a_cluster_lives_and_ends_where_no_file_can_be_locked(recorded: Rehearsed) -> None:
    recorded.ok("rehearse", "env")  # the region runs, which is no part of the product

    def command(*words: str) -> Done:
        argv = without("flock", [CLUSTERCTL, *words])
        return run(argv, env=recorded.env, cwd=recorded.folder, timeout_s=180)

    for words in (("up",), ("extend", "1h"), ("down",)):
        done = command(*words)
        assert done.exit_code == 0, done.text
        assert NO_LOCKS in done.stderr
    assert not recorded.resources()
