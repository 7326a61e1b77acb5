"""The words of a terminal's guard."""

from __future__ import annotations

import shlex

from clusterctl.ssh.single.terminal_guard import marked, watching_line

TOKEN = "0123456789abcdef"


def test_the_guards_own_text_is_not_what_it_looks_for() -> None:
    """Else it would find itself in /proc."""
    text = f"clusterctl-terminal-{TOKEN}"
    assert text in marked("echo it's", TOKEN)
    assert text not in watching_line(TOKEN)
    script = shlex.split(watching_line(TOKEN))[-1]
    assert script.startswith("mark='clusterctl-terminal-[0]123456789abcdef'\n")


def test_the_command_keeps_its_words_and_the_shell_its_exit_code() -> None:
    assert shlex.split(marked("echo 'a  b'; false", TOKEN)) == [
        ":",
        f"clusterctl-terminal-{TOKEN};",
        "(eval",
        "echo 'a  b'; false);",
        "exit",
    ]
