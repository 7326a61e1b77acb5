"""What a configuration means, as plain data: pure, no engine, no network."""
