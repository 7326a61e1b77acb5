"""The Pulumi components of a cluster: the only place that imports pulumi."""
