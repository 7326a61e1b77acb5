"""Simulated GPUs."""
