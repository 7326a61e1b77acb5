"""`clusterctl rehearse clean` ends nothing of a cluster that another command changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from clusterctl_infra.names import REHEARSAL_SUFFIX

from clusterctl.engine.run_file import only_run
from clusterctl.home import Home


def hold_for_clean(words: Sequence[str], home: Home, held: ExitStack) -> None:
    """Holds the clusters that `rehearse` with these words cleans, also for the program that this process becomes.

    Raises EngineError naming the command that changes one of them. For other words than `clean` nothing is held.
    """
    known = sorted(path.stem for path in home.runs_dir.glob(f"*{REHEARSAL_SUFFIX}.lock"))
    for cluster in cleaned(words, known):
        lock = held.enter_context(only_run(home, cluster, verb="rehearse clean"))
        os.set_inheritable(lock.fileno(), True)  # else the exec would release it


def cleaned(words: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Those of the known clusters that `rehearse` with these words cleans. Pure."""
    if not words or words[0] != "clean":
        return ()
    is_all = any(word != "--" and "--all".startswith(word) for word in words[1:] if word.startswith("--"))
    names = {word + REHEARSAL_SUFFIX for word in words[1:]}
    return tuple(cluster for cluster in known if is_all or cluster in names)
