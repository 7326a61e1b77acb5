"""The JSON Schema of cluster.yaml, for editors."""

from __future__ import annotations

from typing import Any  # JSON

from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.model import ClusterConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(catalog: Catalog | None = None) -> dict[str, Any]:
    """A JSON Schema (draft 2020-12); with a catalog, regions are completed too."""
    schema = ClusterConfig.model_json_schema(by_alias=True, mode="validation")
    if catalog is not None:
        schema["properties"]["region"]["enum"] = list(catalog.regions())
    return {"$schema": DIALECT, **schema}
