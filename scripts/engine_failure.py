"""Why the engine could not be had one way: a sentence for a person."""


class EngineFailure(Exception):
    """The message says what was tried and what came of it."""
