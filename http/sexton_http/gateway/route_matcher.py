"""Decides which route a request is for, whichever mount answers it."""

from collections.abc import Mapping, Sequence
from typing import Final

from sexton_http.gateway.operations import Operation
from sexton_http.gateway.pipeline import Mounted

START: Final = 2
"""The place of the second part of a path; before the first there is nothing but a slash."""


class RouteMatcher:
    """Finds a route by method and parts of the path, without trying one after the other.

    It agrees with the map of URLs that Quart makes of the same declarations; a test compares the two. Quart's
    own map remains for what no route answers: it says 404 or 405, and which methods a path has.
    """

    def __init__(self, routes: Sequence[Mounted]) -> None:
        self._fixed: dict[str, dict[str, Mounted]] = {}
        self._by_length: dict[tuple[str, int], list[_Found]] = {}
        self._by_start: dict[tuple[str, int, str, str], list[_Found]] = {}
        """What can be found of those, where the first two parts of a path are known."""
        for mounted in routes:
            operation = mounted.operation
            if not operation.params:
                self._fixed.setdefault(operation.path, {})[operation.method] = mounted
                continue
            pattern = _Pattern(operation)
            self._by_length.setdefault((operation.method, pattern.length), []).append((pattern, mounted))
        for patterns in self._by_length.values():
            # A literal part is more of a match than a parameter is, wherever the first difference lies. A
            # parameter with an action behind it matches what a bare one never does, so it may come last: no
            # hot route has one, and none is to wait for it.
            patterns.sort(key=lambda found: (found[0].has_action, found[0].is_open))
        for (method, length), patterns in self._by_length.items():
            for start in {pattern.start for pattern, _ in patterns if pattern.start is not None}:
                fitting = [found for found in patterns if found[0].start in {None, start}]
                self._by_start[method, length, *start] = fitting

    def find(self, method: str, path: str) -> tuple[Mounted, Mapping[str, str]] | None:
        """The route and the parameters of the path, as they were sent; HEAD finds the route of GET."""
        methods = self._fixed.get(path)
        if methods is not None:
            # A path that is spelled out is no value of another route's parameter, whatever the method.
            fixed = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
            return None if fixed is None else (fixed, {})
        parts = path.split("/")
        length = len(parts)
        found = None if length <= START else self._by_start.get((method, length, parts[1], parts[START]))
        for pattern, mounted in self._by_length.get((method, length), ()) if found is None else found:
            params = pattern.match(parts)
            if params is not None:
                return mounted, params
        return self.find("GET", path) if method == "HEAD" else None


class _Pattern:
    __slots__ = ("_actions", "_checks", "_params", "has_action", "is_open", "length", "start")

    def __init__(self, operation: Operation) -> None:
        parts = operation.path.split("/")
        self.length = len(parts)
        self.is_open = ["{" in part for part in parts]
        fixed = self.length > START and not any(self.is_open[: START + 1])
        self.start = (parts[1], parts[START]) if fixed else None
        """The first two parts; None where one of them is a parameter."""
        self._checks = [(place, part) for place, part in enumerate(parts) if "{" not in part]
        self._params: list[tuple[int, str]] = []
        self._actions: list[tuple[int, str]] = []
        for place, part in enumerate(parts):
            if "{" in part:
                name, _, action = part.removeprefix("{").partition("}")
                self._params.append((place, name))
                if action:
                    self._actions.append((place, action))
        self.has_action = bool(self._actions)

    def match(self, parts: list[str]) -> dict[str, str] | None:
        for place, literal in self._checks:
            if parts[place] != literal:
                return None
        if self._actions:
            parts = list(parts)
            for place, action in self._actions:
                if not parts[place].endswith(action):
                    return None
                parts[place] = parts[place].removesuffix(action)
        params: dict[str, str] = {}
        for place, name in self._params:
            value = params[name] = parts[place]
            # A colon begins an action, so no parameter has one.
            if not value or ":" in value:
                return None
        return params


_Found = tuple[_Pattern, Mounted]
