"""What a function has on the nodes that it runs on."""
