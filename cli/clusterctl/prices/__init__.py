"""Prices of instance types: what a person asked to see, and how they are kept up to date."""
