"""The resource types that the region knows: rows of data, and a few checks."""
