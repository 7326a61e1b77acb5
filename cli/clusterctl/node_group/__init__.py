"""A cluster's nodes for Python programs, as Fabric's connections and groups."""
