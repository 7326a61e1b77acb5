"""A cluster's nodes for Python programs, as connections and groups of Fabric's."""
