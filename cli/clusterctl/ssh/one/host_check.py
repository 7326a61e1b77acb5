"""Whether a node answers as the machine that was declared, before another program than ours goes there.

OpenSSH and rsync say in their own words what is wrong, and know no `clusterctl replace`; so we look first.
"""

from __future__ import annotations

from collections.abc import Generator

from clusterctl.ssh.deadlines import Clock, Deadlines
from clusterctl.ssh.many.event_loop import EventLoop, Task, Waiting
from clusterctl.ssh.many.libssh2 import load
from clusterctl.ssh.many.reaching import reach_host
from clusterctl.ssh.target import Target
from clusterctl.ssh.way_in import uses_session_manager


def check_host(target: Target, deadlines: Deadlines) -> None:
    """Returns when it shows the declared host key; nobody logs in. Raises NodeFailure.

    A session of Session Manager takes seconds to open, so there nobody looks first.
    """
    if uses_session_manager(target.proxy_argv):
        return
    load()
    failures: list[BaseException] = []

    def task() -> Task:
        try:
            yield from _looked(target, deadlines)
        except BaseException as e:  # noqa: BLE001 the loop drops it; raised below
            failures.append(e)

    EventLoop(iter([task()]), width=1).run()
    if failures:
        raise failures[0]


def _looked(target: Target, deadlines: Deadlines) -> Generator[Waiting, bool, None]:
    link = yield from reach_host(target, deadlines, Clock(deadlines.total_s))
    yield Waiting(until=0.0)
    link.close()
