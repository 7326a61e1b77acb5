"""The JSON Schemas of cluster.yaml, for editors and for the reference page."""

from __future__ import annotations

from typing import Any  # JSON

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.target import TARGET

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HOSTS_PREFIX = "Hosts"
"""What the names of definitions for files with `target: hosts` begin with."""


def json_schema(catalog: Catalog | None = None) -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) of files for AWS; with a catalog, an editor completes regions too."""
    schema = _without_titles(ClusterConfig.model_json_schema(by_alias=True, mode="validation"))
    if catalog is not None:
        schema["properties"]["region"]["enum"] = list(catalog.regions())
    return {"$schema": DIALECT, "title": "cluster.yaml", **schema}


def any_target_schema(catalog: Catalog) -> dict[str, Any]:
    """The JSON Schema of any cluster.yaml: `target` says whether it is for AWS or for hosts; without it, for AWS."""
    aws, hosts = json_schema(catalog), hosts_schema()
    definitions = {**_apart(aws.pop("$defs"), ""), **_apart(hosts.pop("$defs"), HOSTS_PREFIX)}
    is_for_hosts = {"properties": {"target": {"const": TARGET}}, "required": ["target"]}
    return {
        "$schema": aws.pop("$schema"),
        "title": aws.pop("title"),
        "if": is_for_hosts,
        "then": _renamed(hosts, HOSTS_PREFIX),
        "else": aws,
        "$defs": definitions,
    }


def hosts_schema() -> dict[str, Any]:
    """The JSON Schema of a cluster.yaml with `target: hosts`."""
    schema: dict[str, Any] = _without_titles(HostsConfig.model_json_schema(by_alias=True, mode="validation"))
    return schema


def _apart(definitions: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The definitions, under names that the other target's do not have."""
    return {f"{prefix}{name}": _renamed(each, prefix) for name, each in definitions.items()}


def _renamed(schema: Any, prefix: str) -> Any:
    """The schema with its references to definitions under their new names."""
    if isinstance(schema, list):
        return [_renamed(each, prefix) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.replace("#/$defs/", f"#/$defs/{prefix}") if key == "$ref" else _renamed(value, prefix)
        for key, value in schema.items()
    }


def _without_titles(schema: Any) -> Any:
    """The schema without pydantic's titles, which only repeat each key in capitals."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }
