"""Running the Pulumi engine, and repairing what a killed run left behind."""
