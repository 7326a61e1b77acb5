"""The resource types that the region knows: data rows, a few checks."""
