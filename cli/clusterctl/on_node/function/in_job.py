"""What `clusterctl` is within the job of a function: functions run where they are, and nothing is brought up.

It takes the package's place where a node unpickles a function, or imports a module that has some.
"""

from __future__ import annotations

from typing import Any, Callable

GUARD = "keep it behind: if __name__ == '__main__':"


class StartedWithinAJob(RuntimeError):
    """A program that runs as a job, or is imported by one, would start another job."""


class Function:
    """A function under `@app.function`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function = function

    def local(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns, in this process."""
        return self._function(*args, **kwargs)

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Raises StartedWithinAJob."""
        raise StartedWithinAJob("%s.remote() was called within a job; %s" % (self._function.__name__, GUARD))

    def spawn(self, *args: Any, **kwargs: Any) -> Any:
        """Raises StartedWithinAJob."""
        raise StartedWithinAJob("%s.spawn() was called within a job; %s" % (self._function.__name__, GUARD))


class App:
    """Functions that belong together; `clusterctl.flow.FlowApp()` has no name."""

    def __init__(self, name: str = "", **settings: Any) -> None:
        self.name = name

    def run(self, **settings: Any) -> Any:
        """Raises StartedWithinAJob."""
        raise StartedWithinAJob("app.run() was called within a job; %s" % GUARD)

    def function(self, **settings: Any) -> Callable[[Callable[..., Any]], Function]:
        """The decorator; its settings were for whoever started the job."""
        return Function


def get_task(name: str, *, cluster: str | None = None) -> Any:
    """Raises StartedWithinAJob."""
    raise StartedWithinAJob("get_task(%r) was called within a job; %s" % (name, GUARD))


class Flow:
    """What `clusterctl.flow.Flow` is within a job."""

    def run(self, *args: Any, **settings: Any) -> Any:
        """Raises StartedWithinAJob."""
        raise StartedWithinAJob("Flow().run() was called within a job; %s" % GUARD)

    def get_task(self, name: str) -> Any:
        """Raises StartedWithinAJob."""
        return get_task(name)
