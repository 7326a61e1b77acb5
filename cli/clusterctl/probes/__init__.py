"""What a node is asked about its health: one command and one pure parser each."""
