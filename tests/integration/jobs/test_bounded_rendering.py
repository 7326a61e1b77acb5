"""A workflow's file that somebody sent takes neither this computer's memory nor its time."""

from __future__ import annotations

import pytest
from clusterctl.workflows.bounded_rendering import TOO_LONG, bounded_render
from clusterctl.workflows.template import TemplateProblems

TOO_LARGE = "template: it takes more than 1024 MiB of memory to render"
RENDERS_TOO_MUCH = "template: it renders to more than 4194304 characters"
DOUBLED = "\n{% set n = namespace(x='x') %}\n{% for i in range(60) %}\n  {% set n.x = n.x ~ n.x %}\n{% endfor %}"


def problems_of(template: str) -> tuple[tuple[int | None, str], ...]:
    """The problems of the template, each with its line."""
    with pytest.raises(TemplateProblems) as caught:
        bounded_render(f"workflow:\n{template}", {})
    return caught.value.problems


@pytest.mark.parametrize(
    ("template", "line", "why"),
    [
        ("{{ '%10000000000d' % 1 }}", 2, TOO_LARGE),
        ("{{ '%10000000000d'|format(1) }}", 2, TOO_LARGE),
        ("\n\n{{ 'x'.ljust(10**10) }}", 4, TOO_LARGE),
        ("{{ 'x'|center(10**10) }}", 2, TOO_LARGE),
        (DOUBLED, 5, TOO_LARGE),
        ("\n{{ '{:>100000000}'.format(1) }}", 3, RENDERS_TOO_MUCH),
        ("{{ " + "[" * 5000 + "]" * 5000 + " }}", None, "template: nested too deeply"),
    ],
)
def test_what_would_fill_the_memory_is_refused_with_its_line(template: str, line: int | None, why: str) -> None:
    assert problems_of(template) == ((line, why),)


def test_what_would_loop_for_hours_is_ended_with_its_line() -> None:
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% set\nx = i %}{% endfor %}{% endfor %}"
    ((line, why),) = problems_of(loop)
    assert why == TOO_LONG
    assert line in (2, 3)


def test_a_workflow_is_rendered_as_it_would_be_here() -> None:
    rendered = bounded_render("workflow:\n  name: {{ n }}\ndefault-values:\n  n: ü\n", {"n": "é"})
    assert rendered.text == "workflow:\n  name: é\n\n\n"
    assert rendered.line_of(2) == 2
