"""What this computer knows of a cluster is forgotten when nothing of it bills, or when nobody can say and a person
agrees."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.cloud.look import look_at_each
from clusterctl.home import Home
from clusterctl.lifecycle.forget import ForgetRequest, forget, refuse_living
from clusterctl.output import Output
from clusterctl_infra.errors import StillBills, UsageError
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory

# In an account whose credentials nobody here has: whether its machines run cannot be known.
KNOWN = replace(an_inventory(), rehearsal=False, region="us-west-2", account_id="999988887777")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(path=tmp_path / "home")
    found.inventory_dir.mkdir(parents=True)
    found.inventory_file(KNOWN.cluster).write_text(json.dumps(inventory_to_json(KNOWN)))
    return found


def test_a_cluster_that_bills_is_not_forgotten() -> None:
    address = {"AllocationId": "eipalloc-1", "Tags": []}
    seen = look_at_each(clients_of({("us-west-2", "describe_addresses", "Addresses"): [address]}), "0123456789ab")
    with pytest.raises(StillBills, match="is not gone, and was not forgotten: 1 thing of it still billing") as refused:
        refuse_living(KNOWN, seen)
    assert refused.value.hint == f"clusterctl down --cluster {KNOWN.cluster}"
    assert len(refused.value.problems) == 1


def test_a_cluster_of_which_nothing_bills_may_be_forgotten() -> None:
    refuse_living(KNOWN, look_at_each(clients_of({}), "0123456789ab"))


@pytest.mark.parametrize("is_agreed", [True, False])
def test_where_aws_does_not_say_a_person_takes_it_upon_them(
    home: Home, monkeypatch: pytest.MonkeyPatch, is_agreed: bool
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    stderr = io.BytesIO()
    output = Output(stdout=io.BytesIO(), stderr=stderr, stdin=io.StringIO())
    request = ForgetRequest(inventory=KNOWN, is_agreed=is_agreed)
    if is_agreed:
        forget(request, output, home, {})
        assert b"it is not known whether its machines run" in stderr.getvalue()
    else:
        with pytest.raises(UsageError, match="nothing was forgotten") as refused:
            forget(request, output, home, {})
        assert refused.value.hint is not None
        assert refused.value.hint.startswith("clusterctl reap --cluster ")
    assert home.inventory_file(KNOWN.cluster).exists() is not is_agreed
