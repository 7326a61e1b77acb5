"""What a run of the engine that failed means to a person."""

from __future__ import annotations

import signal
from pathlib import Path

from clusterctl_infra.errors import CloudError, ClusterctlError, EngineError

from clusterctl.engine.boundary import RunResult
from clusterctl.engine.lock import locks_named
from clusterctl.engine.region import NEXT
from clusterctl.system.disk_space import full_disk_text, full_folder, look_at

WRONG_PASSPHRASE = "incorrect passphrase"
"""The engine's words (3.250, tried 2026-11-22)."""
OTHER_PASSPHRASE = (
    "the stack's config was encrypted with another passphrase than this checkout's. Where the stack lives, set "
    "PULUMI_CONFIG_PASSPHRASE_FILE to the .pulumi/passphrase of the checkout that made it; a new stack of your own "
    "needs no encryptionsalt in its Pulumi.<stack>.yaml: delete that line"
)


def failure(result: RunResult, *, doing: str, cancel: str, more: str = "", hint: str | None = None) -> ClusterctlError:
    """The error that a failed run means: AWS's code and reason if it refused, else what the engine said.

    `cancel`: the command that removes the stack's lock.
    """
    from_aws = next((refusal for refusal in result.refusals if refusal.code is not None), None)
    tail = f". {more}" if more else ""
    if from_aws is not None and from_aws.code is not None:
        return CloudError(f"{from_aws.code}: {_before(tail, from_aws.text)}{tail}", code=from_aws.code, hint=hint)
    locks = locks_named(result.stderr)
    if locks:
        return EngineError(f"{doing}: {locks[0].message}{tail}", hint=locks[0].end_it(cancel=cancel))
    full = full_disk(result)
    if full is not None:
        return EngineError(f"{doing} failed: {full_disk_text(full)}{tail}", hint=look_at(full))
    reasons = [refusal.text for refusal in result.refusals] or [result.stderr.removeprefix("error: ")]
    # A refusal by the stand-in names the command that helps, instead of `hint`, which would be refused again.
    text, _, helps = (reasons[0] or _silent_end(result)).partition(NEXT)
    if WRONG_PASSPHRASE in text:
        return EngineError(f"{doing} failed: {OTHER_PASSPHRASE}{tail}")
    message = f"{doing} failed: {_before(tail, text)}{tail}\n  log      {result.log}"
    return EngineError(message, hint=helps.rstrip() or hint)


def full_disk(result: RunResult) -> Path | None:
    """The folder whose disk a run found full; None where it failed for another reason."""
    text = "\n".join([*(refusal.text for refusal in result.refusals), result.stderr])
    return full_folder(text, log=result.log, is_silent=not text.strip() and result.killed_by is None)


def _silent_end(result: RunResult) -> str:
    """Why the engine failed, where it printed nothing about it."""
    if result.killed_by is None:
        return "the engine ended without a reason"
    return f"the engine was killed ({signal.Signals(result.killed_by).name}); did this computer run out of memory?"


def _before(tail: str, text: str) -> str:
    """The engine's words without the full stop that the tail brings."""
    return text.rstrip().removesuffix(".") if tail else text
