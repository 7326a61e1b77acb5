"""The JSON Schema and the page made from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.load import parse_cluster
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.reference import EXAMPLE, reference
from clusterctl_infra.config.schema import any_target_schema, hosts_schema, json_schema

CATALOG = load_catalog()
DOCS = Path(__file__).parents[4] / "docs" / "config.md"


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (schema, *schema["$defs"].values()):
        yield from part["properties"].items()


def test_the_committed_page_is_the_generated_one() -> None:
    assert DOCS.read_text(encoding="utf-8") == reference(CATALOG), "run scripts/docs"


def test_the_example_of_the_page_is_a_cluster() -> None:
    assert parse_cluster(EXAMPLE, source="example", catalog=CATALOG).instance_type_name(CATALOG) == "p5.48xlarge"


def test_every_key_of_the_schema_has_a_description() -> None:
    assert [key for key, field in properties(json_schema()) if not field.get("description")] == []


def test_the_schema_knows_every_field_and_nothing_else() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert list(schema["properties"]) == list(ClusterConfig.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name", "region", "nodes"]


def test_the_default_of_a_duration_is_written_as_people_write_it() -> None:
    assert json_schema()["$defs"]["CapsConfig"]["properties"]["runtime"]["default"] == "24h"


def test_an_editor_completes_regions() -> None:
    assert "us-west-2" in json_schema(CATALOG)["properties"]["region"]["enum"]


def test_the_schema_of_any_file_is_that_of_the_target_which_it_names() -> None:
    schema = any_target_schema(CATALOG)
    assert schema["if"] == {"properties": {"target": {"const": "hosts"}}, "required": ["target"]}
    assert list(schema["then"]["properties"]) == list(HostsConfig.model_fields)
    assert list(schema["else"]["properties"]) == list(ClusterConfig.model_fields)
    assert schema["then"]["additionalProperties"] is schema["else"]["additionalProperties"] is False
    assert schema["title"] == "cluster.yaml"
    assert "us-west-2" in schema["else"]["properties"]["region"]["enum"]


def test_each_target_has_its_own_definitions() -> None:
    schema = any_target_schema(CATALOG)
    assert set(references(schema)) == {f"#/$defs/{name}" for name in schema["$defs"]}
    storage = schema["then"]["properties"]["storage"]["items"]["$ref"].removeprefix("#/$defs/")
    assert {"nfs", "lustre"} <= set(schema["$defs"][storage]["properties"])
    caps = schema["then"]["properties"]["caps"]["$ref"].removeprefix("#/$defs/")
    assert list(schema["$defs"][caps]["properties"]) == ["runtime"]


def test_every_key_of_hosts_has_a_description() -> None:
    assert [key for key, field in properties(hosts_schema()) if not field.get("description")] == []


def references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from references(each)
    elif isinstance(schema, dict):
        yield from (value for key, value in schema.items() if key == "$ref")
        yield from references(list(schema.values()))
