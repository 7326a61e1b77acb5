"""Everything that ends up on a node."""
