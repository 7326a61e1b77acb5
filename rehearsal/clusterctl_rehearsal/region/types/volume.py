"""Volumes that an independent client makes through the API; the engine's plugin makes none."""

from __future__ import annotations

from clusterctl_rehearsal.region.types.row import ResourceType

VOLUME = "aws:ebs/volume:Volume"
VOLUME_TYPES = (
    ResourceType(
        token=VOLUME,
        label="EBS Volume",
        prefix="vol",
        create="",  # only API calls make volumes
        delete="DeleteVolume",
        not_found="InvalidVolume.NotFound",
        source="internal/service/ec2/ebs_volume.go",
    ),
)
