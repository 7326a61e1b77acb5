"""Connections kept between two commands."""
