"""What a machine reads from its metadata service."""

from __future__ import annotations

import json

import pytest
from clusterctl_infra.outputs import REHEARSAL_ACCOUNT_ID
from clusterctl_rehearsal.region.metadata import identity_document, metadata_text

from tests.unit.rehearsal.small_region import SmallRegion

SHOW_TAGS = {"metadataOptions": {"instanceMetadataTags": "enabled"}}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("local-ipv4", "10.0.8.2"),
        ("instance-type", "p5.48xlarge"),
        ("placement/availability-zone", "us-west-2b"),
        ("placement/region", "us-west-2"),
        ("tags/instance/clusterctl:slot", "2"),
        ("network/interfaces/macs/02:00:0a:00:08:02/device-number", "0"),
    ],
)
def test_a_page_says_what_the_machine_is(world: SmallRegion, path: str, text: str) -> None:
    assert metadata_text(world.node(2, **SHOW_TAGS), path) == text


def test_a_folder_lists_its_names(world: SmallRegion) -> None:
    node = world.node(2, **SHOW_TAGS)
    names = (metadata_text(node, "") or "").splitlines()
    assert {"instance-id", "placement/", "tags/"} <= set(names)


@pytest.mark.parametrize("path", ["nothing", "local-ipv4/more", "tags/instance/none"])
def test_a_page_that_is_not_there_is_none(world: SmallRegion, path: str) -> None:
    assert metadata_text(world.node(2, **SHOW_TAGS), path) is None


def test_tags_are_shown_only_when_the_instance_says_so(world: SmallRegion) -> None:
    assert metadata_text(world.node(2), "tags/instance/clusterctl:slot") is None


def test_the_identity_document_names_the_account_of_rehearsals(world: SmallRegion) -> None:
    assert json.loads(identity_document(world.node()))["accountId"] == REHEARSAL_ACCOUNT_ID
