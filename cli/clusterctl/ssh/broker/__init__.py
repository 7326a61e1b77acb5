"""Connections kept between two commands, by a process that does the second one."""
