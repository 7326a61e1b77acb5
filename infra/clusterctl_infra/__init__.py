"""What a cluster is, and the Pulumi program that makes it."""
