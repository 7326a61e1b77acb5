"""Broken and hostile inputs, made from sound ones by a seed, for everything that reads what somebody else wrote."""
