"""AWS's descriptions of its services are read like botocore does it, only faster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from botocore.exceptions import DataNotFoundError
from botocore.loaders import create_loader
from clusterctl.cloud.descriptions import DescriptionFiles, Descriptions, descriptions

USED = (
    *("cloudwatch", "ec2", "efs", "fsx", "iam", "pricing", "s3", "scheduler", "service-quotas", "ssm"),
    *("stepfunctions", "sts"),
)


@pytest.mark.parametrize("service", USED)
def test_each_description_is_the_one_that_botocore_reads(service: str) -> None:
    ours, theirs = Descriptions(file_loader=DescriptionFiles()), create_loader()
    for kind in ("service-2", "endpoint-rule-set-1", "paginators-1"):
        read = json.dumps(ours.load_service_model(service, kind))
        assert read == json.dumps(theirs.load_service_model(service, kind)), "and in the same order"
    for name in ("endpoints", "partitions", "_retry", "sdk-default-configuration"):
        assert json.dumps(ours.load_data(name)) == json.dumps(theirs.load_data(name))


def test_a_person_s_own_descriptions_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", str(tmp_path))
    (tmp_path / "sts" / "2099-01-01").mkdir(parents=True)
    (tmp_path / "sts" / "2099-01-01" / "service-2.json").write_text('{"metadata": {"serviceId": "mine"}}')
    loader = descriptions("/nowhere:$MINE")
    assert loader.load_service_model("sts", "service-2")["metadata"]["serviceId"] == "mine"
    assert descriptions("/nowhere:$MINE") is loader, "once in a process"


def test_what_nobody_described_is_an_error() -> None:
    with pytest.raises(DataNotFoundError):
        descriptions(None).load_service_model("ec2", "no-such-type")
