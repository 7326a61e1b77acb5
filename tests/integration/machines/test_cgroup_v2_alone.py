"""Machines on a computer that has cgroup version 2 alone, as Debian and Ubuntu have by default."""

from __future__ import annotations

import subprocess
import sys

from tests.integration.rehearsed import ROOT

ONE_TREE = """
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
[ "$(grep -c ' /sys/fs/cgroup' /proc/self/mounts)" = 1 ]
exec "$@"
"""
TESTS = "tests/integration/machines/test_machines_together.py"
SOME = "test_a_frozen_machine or test_a_machine_killed_from_outside_is_tidied_up_without_anybody[cgroup]"


def test_machines_boot_freeze_end_and_leave_nothing_where_there_is_one_tree() -> None:
    """The tests of booted machines, in a mount namespace whose /sys/fs/cgroup is that tree."""
    in_it = ["unshare", "--mount", "sh", "-ec", ONE_TREE, "sh"]
    argv = [*in_it, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS, "-k", SOME]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout, done.stdout
