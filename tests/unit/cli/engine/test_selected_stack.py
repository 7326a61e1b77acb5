"""Which stack plain `pulumi` means after the first `up` of a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.selected_stack import persons_engine, select_for
from clusterctl.engine.stack import Stack
from clusterctl_infra.errors import EngineError

from tests.unit.cli.engine.fake_engine import FakeEngine


@dataclass(kw_only=True)
class SelectedEngine(FakeEngine):
    """An engine that notes what it is asked to select."""

    refuses: bool = False
    selected: list[bool] = field(default_factory=list)
    """For each selection: whether it makes the stack where there is none."""

    def select_stack(self, *, creates: bool = False) -> None:
        self.selected.append(creates)
        if self.refuses:
            raise EngineError("pulumi stack select failed: no passphrase", hint="pulumi stack")


def engine_of(*, backend: str, is_rehearsal_project: bool, refuses: bool = False) -> SelectedEngine:
    return SelectedEngine(
        stack=Stack(directory=Path("/stacks/t"), project="t", name="dev", is_rehearsal_project=is_rehearsal_project),
        environment=EngineEnvironment(
            env={"PULUMI_HOME": "/home/rehearsal/pulumi", "PULUMI_BACKEND_URL": backend},
            rehearsal=True,
            executable="pulumi",
            config_file=Path("/home/rehearsal/config/t/Pulumi.dev.yaml"),
            run_token="1",
        ),
        refuses=refuses,
    )


@pytest.mark.parametrize(
    ("is_rehearsal_project", "backend", "selected"),
    [
        (True, "file:///state", [False]),
        (True, "s3://bucket", [False]),
        (False, "file:///state", [True]),
        (False, "s3://bucket", []),
        (False, "https://api.pulumi.com", []),
    ],
)
def test_a_rehearsal_makes_an_empty_stack_only_in_files_of_the_person(
    backend: str, selected: list[bool], *, is_rehearsal_project: bool
) -> None:
    engine = engine_of(backend=backend, is_rehearsal_project=is_rehearsal_project)
    select_for(engine)
    assert engine.selected == selected


def test_nothing_is_selected_for_a_person_whose_environment_names_the_stack() -> None:
    engine = engine_of(backend="file:///state", is_rehearsal_project=True)
    named = replace(engine.environment, env={**engine.environment.env, "PULUMI_STACK": "dev"})
    engine = replace(engine, environment=named)
    select_for(engine)
    assert engine.selected == []


def test_a_pulumi_that_refuses_ends_nothing() -> None:
    engine = engine_of(backend="file:///state", is_rehearsal_project=True, refuses=True)
    select_for(engine)
    assert engine.selected == [False]


def test_the_selection_is_made_where_a_person_types_pulumi_and_not_in_the_rehearsal() -> None:
    person = persons_engine(
        engine_of(backend="file:///rehearsal", is_rehearsal_project=False),
        {"PULUMI_HOME": "/home/ada/.pulumi", "PULUMI_BACKEND_URL": "file:///home/ada"},
    )
    assert person.environment.env["PULUMI_HOME"] == "/home/ada/.pulumi"
    assert person.environment.config_file == Path("/stacks/t/Pulumi.dev.yaml")
    assert person.backend_url() == "file:///home/ada"
