"""Logins of package indexes, moved out of what pip shows to everybody."""

from __future__ import annotations

import netrc
from pathlib import Path

import pytest
from clusterctl.on_node.job.index_logins import without_logins

NAMED = "--index-url https://ada:hu%2Dsh%40%21@pypi.lab:8443/simple\nnumpy\nx @ https://ada:hu-sh@files.lab/x.whl\n"


def test_logins_go_into_a_file_that_python_reads_as_they_were(tmp_path: Path) -> None:
    bare, logins = without_logins(NAMED)
    assert bare == "--index-url https://pypi.lab:8443/simple\nnumpy\nx @ https://files.lab/x.whl\n"
    (tmp_path / "netrc").write_text(logins)
    read = netrc.netrc(str(tmp_path / "netrc"))
    assert read.authenticators("pypi.lab") == ("ada", "", "hu-sh@!")
    assert read.authenticators("files.lab") == ("ada", "", "hu-sh")


@pytest.mark.parametrize(
    "text",
    [
        "numpy==2.0 --hash=sha256:00\n",
        "--index-url https://token@pypi.lab/simple\n",
        "x @ git+https://ada:hush@git.lab/x\n",
        "--index-url https://a:b@h/x\n--extra-index-url https://c:d@h/y\n",
        "--index-url https://ada:a%20b@h/x\n",
        "--index-url https://${USER}:${TOKEN}@h/x\n",
        "--index-url https://ada:a%22b@h/x\n",
        "--index-url https://ada:a%0Amachine@h/x\n",
        "x @ https://h/a:b@c/x.whl\n",
    ],
)
def test_what_a_netrc_file_cannot_say_is_left_as_it_is(text: str) -> None:
    assert without_logins(text) == (text, "")
