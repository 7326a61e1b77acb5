"""Words of the region's private requests."""

PRIVATE = "/clusterctl/"
TOKEN_HEADER = "X-Clusterctl-Token"
