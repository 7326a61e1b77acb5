"""`clusterctl schema`: JSON Schema of cluster.yaml or job.yaml."""

from __future__ import annotations

import click
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.schema import any_target_schema

from clusterctl.jobs.job_file import job_schema
from clusterctl.output import Output


@click.command("schema")
@click.option("--job", "is_job", is_flag=True, help="Of job.yaml, which clusterctl run reads.")
@click.pass_obj
def command(output: Output, is_job: bool) -> None:
    """Prints the JSON Schema of cluster.yaml, for AWS and for existing machines, or of a job file, for editors.

    \b
    Example:
      clusterctl schema > cluster.schema.json
      # then, as the first line of cluster.yaml:
      # yaml-language-server: $schema=cluster.schema.json
      clusterctl schema --job > job.schema.json
    """
    output.json(job_schema() if is_job else any_target_schema(load_catalog()))
