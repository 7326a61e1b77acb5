"""The failure of one way to get the engine."""


class EngineFailure(Exception):
    """The message tells a person what was tried and how it failed."""
