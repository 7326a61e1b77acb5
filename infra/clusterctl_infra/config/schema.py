"""The JSON Schema of cluster.yaml, for editors and for the reference page."""

from __future__ import annotations

from typing import Any  # JSON

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.hosts import HostsConfig
from clusterctl_infra.config.model import ClusterConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(catalog: Catalog | None = None) -> dict[str, Any]:
    """A JSON Schema (draft 2020-12); with a catalog, an editor completes regions too."""
    schema = _without_titles(ClusterConfig.model_json_schema(by_alias=True, mode="validation"))
    if catalog is not None:
        schema["properties"]["region"]["enum"] = list(catalog.regions())
    return {"$schema": DIALECT, "title": "cluster.yaml", **schema}


def hosts_schema() -> dict[str, Any]:
    """The JSON Schema of a cluster.yaml with `target: hosts`."""
    schema: dict[str, Any] = _without_titles(HostsConfig.model_json_schema(by_alias=True, mode="validation"))
    return schema


def _without_titles(schema: Any) -> Any:
    """pydantic titles every key with itself in capitals, which says nothing."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }
