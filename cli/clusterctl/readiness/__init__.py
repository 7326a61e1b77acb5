"""Nodes until they are ready: asked over SSH, given the membership."""
