"""Our own Pulumi provider: the resources Identity, Membership and Inventory, over raw gRPC."""
