"""`clusterctl schema`: JSON Schema of cluster.yaml."""

from __future__ import annotations

import click
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.schema import json_schema

from clusterctl.output import Output


@click.command("schema")
@click.pass_obj
def command(output: Output) -> None:
    """The JSON Schema of cluster.yaml, for editors.

    \b
    Example:
      clusterctl schema > cluster.schema.json
      # then, as the first line of cluster.yaml:
      # yaml-language-server: $schema=cluster.schema.json
    """
    output.json(json_schema(load_catalog()))
