"""This computer: its processes, disks and files."""
