"""Equal outputs under folded names."""

from __future__ import annotations

import pytest
from clusterctl.ssh.spooled_run import SameOutput, render_gathered


def group(output: bytes, *names: str, is_truncated: bool = False) -> SameOutput:
    return SameOutput(names=names, read=lambda: output, is_empty=not output, is_truncated=is_truncated)


def shown(*groups: SameOutput) -> list[str]:
    return render_gathered(groups).decode(errors="replace").splitlines()


def test_nodes_that_say_the_same_are_one_heading() -> None:
    assert shown(group(b"a\nb\n", "t-0", "t-1", "t-2", "t-4")) == ["t-[0-2,4] (4 nodes)", "  a", "  b"]


def test_the_largest_group_comes_first_and_a_differing_line_is_marked() -> None:
    lines = shown(group(b"new\n", "t-2"), group(b"old\n", "t-0", "t-1"))
    assert lines == ["t-[0-1] (2 nodes)", "  old", "t-2", f"  {'new':<48}  ← differs"]


def test_a_longer_output_is_a_diff_to_the_majority() -> None:
    common = b"".join(b"line %d\n" % n for n in range(50))
    lines = shown(group(common, "t-0", "t-1"), group(common.replace(b"line 30\n", b"line x\n"), "t-2"))
    assert lines[51] == "t-2 (differs: - as most have it, + as it is here)"
    assert lines[52:] == ["  @@ -30,3 +30,3 @@", "   line 29", "  -line 30", "  +line x", "   line 31"]


def test_lines_that_differ_stand_alone_though_no_newline_ends_the_output() -> None:
    common = b"".join(b"line %d\n" % n for n in range(50)) + b"end"
    lines = shown(group(common, "t-0", "t-1"), group(common.replace(b"end", b"END"), "t-2"))
    assert lines[53:] == ["  @@ -50,2 +50,2 @@", "   line 49", "  -end", "  +END"]


def test_an_output_that_differs_in_its_last_newline_alone_is_shown_whole() -> None:
    common = b"".join(b"line %d\n" % n for n in range(50))
    lines = shown(group(common, "t-0", "t-1"), group(common.removesuffix(b"\n"), "t-2"))
    assert lines[51:] == ["t-2 (differs)", *(f"  line {n}" for n in range(50))]


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param((group(b"a\n", "t-0"), group(b"b\n", "t-1")), id="every node says something else"),
        pytest.param((group(b"a\n", "t-0", "t-1"), group(b"b\n", "t-2", "t-3")), id="two halves"),
    ],
)
def test_without_a_majority_nobody_differs(groups: tuple[SameOutput, ...]) -> None:
    assert not any("differs" in line for line in shown(*groups))


def test_nothing_is_shown_when_nobody_says_anything() -> None:
    assert render_gathered([group(b"", "t-0", "t-1")]) == b""


def test_silence_among_others_is_said() -> None:
    assert shown(group(b"a\n", "t-0", "t-1"), group(b"", "t-2"))[2:] == ["t-2", "  (no output)"]


def test_a_cut_output_says_so_and_ends_its_line() -> None:
    assert shown(group(b"abc", "t-0", is_truncated=True)) == ["t-0", "  abc", "  [truncated: there was more]"]


def test_bytes_that_are_no_text_pass_as_they_are() -> None:
    assert b"  \xff\xfe\n" in render_gathered([group(b"\xff\xfe\n", "t-0")])
