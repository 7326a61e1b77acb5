"""The sentence that a failed run of the engine becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.events import Refusal
from clusterctl.lifecycle.failure import failure

CANCEL = "cd /stacks/train && pulumi cancel --stack dev"
KEPT = "Nothing was kept: no node runs, nothing bills."


def failed(*refusals: Refusal, stderr: str = "") -> RunResult:
    return RunResult(
        succeeded=False, interrupted=False, changes={}, refusals=refusals, log=Path("/x.log"), stderr=stderr
    )


@pytest.mark.parametrize("text", ["no capacity for 4 × p5.48xlarge", "no capacity for 4 × p5.48xlarge."])
def test_what_was_kept_is_a_sentence_of_its_own(text: str) -> None:
    refusal = Refusal(code="InsufficientInstanceCapacity", text=text, urn="u")
    message = failure(failed(refusal), doing="pulumi up", cancel=CANCEL, more=KEPT).message
    assert message == f"InsufficientInstanceCapacity: no capacity for 4 × p5.48xlarge. {KEPT}"
    assert failure(failed(refusal), doing="pulumi up", cancel=CANCEL).message.endswith(text)
    engine = failure(failed(stderr="error: the program ended"), doing="pulumi up", cancel=CANCEL, more=KEPT).message
    assert engine == f"pulumi up failed: the program ended. {KEPT}\n  log      /x.log"


def test_an_engine_that_says_nothing_has_ended_without_a_reason() -> None:
    message = failure(failed(), doing="pulumi up", cancel=CANCEL, more=KEPT).message
    assert message.startswith(f"pulumi up failed: the engine ended without a reason. {KEPT}")


def test_an_engine_that_was_killed_says_nothing_so_the_signal_is_told() -> None:
    message = failure(replace(failed(), killed_by=9), doing="pulumi up", cancel=CANCEL).message
    assert "the engine was killed (SIGKILL); did this computer run out of memory?" in message


def test_the_stand_in_s_own_way_out_is_the_hint_and_not_the_same_again() -> None:
    refusal = Refusal(code=None, text="another train lives here; next: clusterctl rehearse clean train", urn="u")
    error = failure(failed(refusal), doing="pulumi up", cancel=CANCEL, more=KEPT, hint="clusterctl up stacks/train")
    assert error.message.startswith(f"pulumi up failed: another train lives here. {KEPT}")
    assert error.hint == "clusterctl rehearse clean train"


def test_a_stack_of_another_checkout_is_told_by_its_passphrase_and_not_tried_again() -> None:
    stderr = "error: getting stack configuration: get stack secrets manager: incorrect passphrase"
    error = failure(
        failed(stderr=stderr), doing="pulumi up", cancel=CANCEL, more=KEPT, hint="clusterctl up stacks/train"
    )
    assert "another passphrase than this checkout's" in error.message
    assert error.message.endswith(KEPT)
    assert error.hint is None


@pytest.mark.parametrize("is_event", [True, False])
def test_a_full_disk_is_told_with_the_folder_and_what_is_free(tmp_path: Path, is_event: bool) -> None:
    words = f"failed to save snapshot: write {tmp_path}/dev.json.18ea.tmp: no space left on device"
    result = failed(Refusal(code=None, text=words, urn="u")) if is_event else failed(stderr=words)
    error = failure(result, doing="pulumi up", cancel=CANCEL, more="What was made is there", hint="clusterctl up s")
    assert error.message.startswith(f"pulumi up failed: the disk of {tmp_path} was full (")
    assert error.message.endswith(" are free now). What was made is there")
    assert error.hint == f"df -h {tmp_path}"
