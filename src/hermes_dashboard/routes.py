"""The routes of one resource."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import compile_path

from hermes_dashboard.errors import PlainJson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fastapi import FastAPI
    from starlette.types import Lifespan

_BUILD_LOCK: Final = threading.RLock()


class LateRoute(APIRoute):
    """A route that builds its validators at its first request, or for the OpenAPI document.

    Those of all routes are most of the CPU time of the dashboard's start, and a visit needs few.
    Until then the route has only what a path is compared with.
    """

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, methods: Iterable[str], **options: Any
    ) -> None:
        self.path = path
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in methods}
        self._arguments = {"endpoint": endpoint, "methods": self.methods, **options}
        self._is_built = False

    def __getattr__(self, name: str) -> Any:
        # Built once: the OpenAPI document looks fields up by identity while requests arrive.
        with _BUILD_LOCK:
            if not self._is_built:
                super().__init__(self.path, **self._arguments)
                self._is_built = True
        return object.__getattribute__(self, name)


class ResourceRouter(APIRouter):
    """Routes that `Dashboard.add_resource` takes over unchanged, with its response class."""

    def __init__(
        self, prefix: str = "", *, tag: str, lifespan: Lifespan[FastAPI] | None = None
    ) -> None:
        super().__init__(
            prefix=prefix,
            tags=[tag],
            lifespan=lifespan,
            default_response_class=PlainJson,
            route_class=LateRoute,
        )
