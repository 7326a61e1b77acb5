"""Values of `env:` as they arrive: through real shells, real systemd, a real sshd, and the raw list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from clusterctl_infra.config.fields import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.bootstrap.bootstrapped import OWN, SLOT, Bootstrapped

AWKWARD = (
    "",
    " leading and trailing ",
    "\ttab\t",
    "it's",
    "''",
    '"double"',
    "$HOME ${HOME} $(id) `id`",
    "# no comment",
    "a # b",
    "; id; && ||",
    "back\\slash \\n \\",
    "\\\\",
    "a=b=c",
    "=",
    "%n %% %i",
    "* ? [a-z] {a,b} ~ !!",
    "ümläut 漢字 😀 \u00a0 \u2028",
    "\x01\x1b[1m\r\x7f",
    "x" * 8000,
)
QUOTING = st.text(st.sampled_from("'\"\\$`#; \t=%!*{}~ä😀aZ0/-"), max_size=24)
ANYTHING = st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), max_size=24)
DRAWN = st.lists(QUOTING | ANYTHING, min_size=40, max_size=40)
READERS = {
    "sh": "sh -c 'set -a; . /etc/clusterctl/env; exec env -0'",
    "bash": "bash -c 'set -a; . /etc/clusterctl/env; exec env -0'",
    "systemd": "sudo systemd-run --quiet --pipe --wait -p EnvironmentFile=/etc/clusterctl/env env -0",
    "sshd": "env -0",
}


def named(values: Sequence[str]) -> dict[str, str]:
    return {f"V{number}": value for number, value in enumerate(values)}


@pytest.fixture(scope="module")
def pushed(machine: Bootstrapped) -> Iterator[dict[str, str]]:
    """The values that the shared machine has been given."""
    sent = named(AWKWARD)
    generation = machine.status(SLOT)["generation"] + 1
    answer = machine.push(SLOT, generation=generation, env=sent)
    assert answer.code == 0, answer
    yield sent
    machine.push(SLOT, generation=machine.status(SLOT)["generation"] + 1, env=OWN)


SEVERAL_LINES = ("SKYPILOT_NODE_IPS", "DSTACK_NODES_IPS")
CLEAN = "env -i PATH=$PATH HOME=$HOME "


def read_by(machine: Bootstrapped, reader: str) -> dict[str, str]:
    command = (CLEAN if reader in ("sh", "bash") else "") + READERS[reader]
    return dict(row.partition("=")[::2] for row in machine.output(SLOT, command).split("\0"))


@pytest.mark.parametrize("reader", READERS)
def test_every_value_arrives_as_it_was_written(machine: Bootstrapped, pushed: dict[str, str], reader: str) -> None:
    seen = read_by(machine, reader)
    assert {name: seen.get(name) for name in pushed} == pushed


@pytest.mark.parametrize("reader", READERS)
def test_a_list_with_an_address_to_a_line_arrives_where_the_page_says(
    machine: Bootstrapped, pushed: dict[str, str], reader: str
) -> None:
    seen = read_by(machine, reader)
    addresses = None if reader == "sshd" else "\n".join(f"10.0.8.{slot}" for slot in range(4))
    assert {name: seen.get(name) for name in SEVERAL_LINES} == dict.fromkeys(SEVERAL_LINES, addresses)


def test_the_raw_list_is_what_it_says(machine: Bootstrapped, pushed: dict[str, str]) -> None:
    rows = machine.output(SLOT, "cat /etc/clusterctl/env.list").split("\n")
    seen = dict(row.partition("=")[::2] for row in rows if not row.startswith("#"))
    assert {name: seen.get(name) for name in pushed} == pushed


@given(values=DRAWN)
@settings(max_examples=6, deadline=None)
def test_whatever_cluster_yaml_takes_arrives_as_it_was_written(machine: Bootstrapped, values: list[str]) -> None:
    """Forty values at a time, since each example is a push and four sessions."""
    sent = taken(named(values))
    assert machine.push(SLOT, generation=machine.status(SLOT)["generation"] + 1, env=sent).json["ok"]
    for reader in READERS:
        seen = read_by(machine, reader)
        assert {name: seen.get(name) for name in sent} == sent, reader
    rows = machine.output(SLOT, "cat /etc/clusterctl/env.list").split("\n")
    raw = dict(row.partition("=")[::2] for row in rows if not row.startswith("#"))
    assert {name: raw.get(name) for name in sent} == sent


def taken(env: dict[str, str]) -> dict[str, str]:
    """The variables that cluster.yaml may have."""
    return {name: value for name, value in env.items() if not is_refused(name, value)}


def is_refused(name: str, value: str) -> bool:
    try:
        check_env({name: value})
    except ValueError:
        return True
    return False
