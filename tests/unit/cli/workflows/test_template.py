"""The template of a workflow file: values of flags and defaults, tokens that stay, and mistakes with their lines."""

from __future__ import annotations

import contextlib
import string

import pytest
from clusterctl.workflows.template import TemplateProblems, read_settings, render, split_values
from clusterctl.workflows.tokens import HIDDEN, hide, resolve, reveal, tokens_in
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.workflows.workflow_files import SCALED, problems, read

RENDERED = """\
workflow:
  name: train
  resources:
    default: {gpu: 4, cpu: 4, memory: 8Gi}
  groups:
  - name: training
    tasks:
    
    - name: master
      
      lead: true
      outputs: [{dataset: {name: "model-{{uuid}}", path: models}}]
      
      image: pytorch
      command: [bash]
      args: [/tmp/run.sh]
      files:
      - path: /tmp/run.sh
        contents: |
          train --of 1 --rank 0 --to {{host:master}} --out {{output}}/models
      - {path: /tmp/train.py, localpath: train.py}
    
"""  # noqa: W293 what Jinja leaves of a line that held a statement
FILTERS = (
    "center(9)",
    "join",
    "length",
    "list",
    "sum",
    "indent",
    "first",
    "int",
    "string",
    "sort",
    "batch(2)",
    "tojson",
)
VALUE = st.one_of(st.integers(), st.text(string.ascii_letters + "-_./ ", min_size=1).filter(lambda text: text.strip()))


def test_the_workflow_is_rendered_with_its_values_and_tokens_stay_as_they_are() -> None:
    assert read(SCALED, "n_gpus=4", "n_nodes=1").rendered.rstrip("\n") + "\n" == RENDERED


def test_every_rendered_line_knows_the_line_that_it_comes_from() -> None:
    rendered = render(SCALED, {"n_nodes": 3})
    lines = rendered.text.splitlines()
    assert [rendered.line_of(n) for n, line in enumerate(lines, 1) if "image: pytorch" in line] == [14, 14, 14]
    assert [rendered.line_of(n) for n, line in enumerate(lines, 1) if "- name: worker_2" in line] == [9]


def test_lines_are_unknown_where_the_marks_would_change_what_is_rendered() -> None:
    text = "{% set x %}a\n{% endset %}workflow:\n  name: {{ 'same' if x == 'a\n' else 'other' }}\n"
    rendered = render(text, {})
    assert "name: same" in rendered.text
    assert rendered.line_of(2) is None


@pytest.mark.parametrize(
    ("pair", "value"),
    [("n=4", 4), ("n=0.5", 0.5), ("n=4x", "4x"), ("n=", ""), ("n=a=b", "a=b"), ("n=true", "true")],
)
def test_set_gives_whole_numbers_numbers_and_else_text(pair: str, value: object) -> None:
    assert read_settings([pair], []) == {"n": value}


def test_set_string_is_text_and_comes_last() -> None:
    assert read_settings(["n=4"], ["n=5"]) == {"n": "5"}


@pytest.mark.parametrize("pair", ["n", "=4", "n-x=4", "--n=4"])
def test_a_setting_that_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(TemplateProblems, match="write NAME=VALUE"):
        read_settings([pair], [])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("{{ n }}", "line 2 template: n has no value: --set n=…, or default-values"),
        ("{{ a }}{{ b }}", "line 2 template: a has no value: --set a=…, or default-values"),
        ("{% for %}", "line 2 template: Expected an expression, got 'end of statement block'"),
        ("{{ 1 / 0 }}", "line 2 template: division by zero"),
        ("{{hots:x}}", "line 2 {{hots:x}}: no token (did you mean host?)"),
        ("{{nothing:x}}", "line 2 {{nothing:x}}: no token; there are output, workflow_id, uuid, host, input"),
        ("{{host:}}", "line 2 {{host:}}: no token: host: wants the name of a task"),
        ("{{ output }}", "line 2 {{ output }}: write it without blanks: {{output}}"),
        ("{{ host:a }}", "line 2 {{ host:a }}: write it without blanks: {{host:a}}"),
        ("{{ 'a' * 10**9 }}", "line 2 template: a text or a list of 1000000000 parts is too large"),
        ("{{ 10 ** 10 ** 10 }}", "line 2 template: 10000000000 ** 10 is too large"),
        ("{{ [].__class__ }}", "line 2 template: access to attribute '__class__' of 'list' object is unsafe."),
        ("{% include '/etc/passwd' %}", "line 2 template: no loader for this environment specified"),
        ("\ue010", "line 2 the character U+E010 is not allowed"),
    ],
)
def test_what_is_wrong_with_a_template_is_told_with_its_line(name: str, problem: str) -> None:
    assert problems(f"workflow:\n  name: {name}\n")[0] == problem


def test_all_names_without_a_value_are_told_at_once_each_with_its_line() -> None:
    found = problems(SCALED.replace("n_nodes)", "nodes)").replace("{{ n_gpus }}", "{{ n_gpu }}"))
    assert [line.split(" --set")[0] for line in found] == [
        "line 4 template: n_gpu has no value (did you mean n_gpus?):",
        "line 8 template: nodes has no value (did you mean n_nodes?):",
    ]


def test_a_setting_that_changes_nothing_is_refused() -> None:
    assert problems(SCALED, "n_node=4") == ["--set n_node=…: the file has no such value (did you mean n_nodes?)"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("default-values: 4\n", "line 1 default-values: write names with their values, such as n_nodes: 2"),
        (
            "a: 1\ndefault-values:\n  n-x: 2\n",
            "line 2 default-values: write names with their values, such as n_nodes: 2",
        ),
        (
            "default-values:\n  a: [\n",
            "line 3 default-values: not YAML: expected the node content, but found '<stream end>'",
        ),
        ("default-values: {}\ndefault-values: {}\n", "line 2 default-values: written twice (first in line 1)"),
    ],
)
def test_default_values_that_are_none_are_told_with_their_line(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_default_values_may_stand_before_the_workflow() -> None:
    rest, values = split_values("# own\ndefault-values:\n  n: 2\n\nworkflow:\n  name: x{{n}}\n")
    assert values == {"n": 2}
    assert rest == "# own\n\n\n\nworkflow:\n  name: x{{n}}\n"


@given(st.text(alphabet=string.printable))
def test_hidden_tokens_come_back_and_nothing_of_them_is_left_for_jinja(text: str) -> None:
    assert reveal(hide(text)) == text
    assert HIDDEN.search(hide(text)) is None


@given(st.text(alphabet="{}:hostinput wrkfld_%#-\n", max_size=60))
def test_no_text_makes_rendering_raise_anything_else(text: str) -> None:
    with contextlib.suppress(TemplateProblems):
        render(text, {})


NUMBER = st.sampled_from(["0", "1", "-1", "3", "10**5", "1.5", "none", "'a'", "[1]", "{}", "n"])
EXPRESSION = st.recursive(
    NUMBER,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "~", "==", "in", "and"]), inner).map(
            " ".join
        ),
        st.tuples(inner, st.sampled_from(FILTERS)).map("|".join).map(lambda text: f"({text})"),
        inner.map(lambda text: f"('%d %s' % ({text}))"),
        inner.map(lambda text: f"({text})[{text}]"),
        inner.map(lambda text: f"({text}).__class__"),
    ),
    max_leaves=6,
)
PIECE = st.one_of(
    EXPRESSION.map(lambda text: f"{{{{ {text} }}}}"),
    EXPRESSION.map(lambda text: f"{{% for n in {text} %}}a{{{{ n }}}}{{% endfor %}}"),
    EXPRESSION.map(lambda text: f"{{% set n = {text} %}}"),
    EXPRESSION.map(lambda text: f"{{% if {text} %}}\n{{% endif %}}"),
    st.sampled_from(["\n", "{{host:a}}", "{% endfor %}", "{{ n }}", "a: b\n"]),
)


@settings(deadline=None)
@given(st.lists(PIECE, max_size=6).map("".join))
def test_no_template_of_jinja_s_own_words_makes_rendering_raise_anything_else(text: str) -> None:
    with contextlib.suppress(TemplateProblems):
        render(text + "\ndefault-values: {n: 3}\n", {})


@given(VALUE, VALUE)
def test_a_value_that_is_set_takes_the_place_of_the_default(default: object, own: object) -> None:
    text = f"workflow: '{{{{ v }}}}'\ndefault-values:\n  v: {default!r}\n"
    assert render(text, {"v": own}).text.startswith(f"workflow: '{own}'")


def test_braces_that_jinja_is_told_to_leave_are_no_tokens() -> None:
    text = "workflow: '{% raw %}{{x:>3}} {{host:a}}{% endraw %}{# {{y:z}} #}'\n"
    assert render(text, {}).text == "workflow: '{{x:>3}} {{host:a}}'\n"


def test_tokens_are_resolved_with_and_without_blanks_and_others_are_left() -> None:
    text = "{{host:a}} {{ host:a }} {{x}} {{host:b}}"
    assert list(tokens_in(text)) == ["host:a", "host:a", "host:b"]
    assert resolve(text, {"host:a": "train-0"}) == "train-0 train-0 {{x}} {{host:b}}"
