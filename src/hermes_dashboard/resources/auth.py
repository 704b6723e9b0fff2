"""Sign-in with a link from the terminal or with the password."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fastapi import HTTPException, Request, Response
from pydantic import BaseModel, Field

from hermes_core.command_name import with_command_name
from hermes_dashboard.auth.gate import CALLER_KEY, cookies
from hermes_dashboard.auth.tokens import COOKIE_SECONDS
from hermes_dashboard.errors import PlainJson
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.models.text import Responses

LINK_IS_USED: Final = (
    "This link was already used or has expired. Run `hermes dashboard` for a new one."
)
WRONG_PASSWORD: Final = "Wrong password."  # noqa: S105 - a message
ONLY_LINKS: Final = "This dashboard is opened with a link. Run `hermes dashboard`."
TOO_MANY_ATTEMPTS: Final = "Too many failed attempts. Try again in a minute."
ONLY_PROGRAMS: Final = "Creating a link requires the token in run/dashboard.json."

UNAUTHORIZED: Final[Responses] = {
    400: {"description": "invalid JSON"},
    401: {"description": "not authenticated"},
}
RATE_LIMITED: Final[Responses] = {
    **UNAUTHORIZED,
    429: {"description": "too many failed attempts; see Retry-After"},
}


class Launch(BaseModel):
    """The token of a link."""

    token: str = Field(max_length=200)


class Login(BaseModel):
    """A password."""

    password: str = Field(max_length=1024)


class LoginLink(BaseModel):
    """A single-use sign-in link."""

    url: str


def router(access: Access) -> ResourceRouter:
    """The routes under `/api/auth`."""
    routes = ResourceRouter("/api/auth", tag="auth")

    @routes.post("/launch", status_code=204, responses=UNAUTHORIZED)
    def launch(body: Launch, request: Request) -> Response:
        """Exchange the token of a sign-in link for a cookie."""
        if access.origins.login != "link" or not access.links.use(body.token):
            return _refused(LINK_IS_USED, access)
        return _signed_in(access, request)

    @routes.post("/login", status_code=204, responses=RATE_LIMITED)
    def login(body: Login, request: Request) -> Response:
        """Exchange the password for a cookie."""
        if access.origins.login != "password":
            return _refused(ONLY_LINKS, access)
        return _check_password(body.password, access, request)

    @routes.post("/logout", status_code=204)
    def logout(request: Request) -> Response:
        """Sign out: invalidate the cookie."""
        for cookie in cookies(request.scope, access.origins.cookie):
            access.cookies.forget(cookie)
        response = Response(status_code=204)
        response.delete_cookie(access.origins.cookie, path="/", httponly=True, samesite="strict")
        return response

    @routes.post("/links", responses={403: {"description": "not for pages"}})
    def link(request: Request) -> LoginLink:
        """Create a sign-in link, for `hermes dashboard` when an instance is already running."""
        if request.scope[CALLER_KEY] != "bearer":
            raise HTTPException(403, ONLY_PROGRAMS)
        return LoginLink(url=access.link())

    return routes


def _check_password(password: str, access: Access, request: Request) -> Response:
    """Check the password, with a rate limit against guessing."""
    address = access.proxies.client_address(request.scope)
    seconds = access.rate_limit.begin(address)
    if seconds:
        headers = {"Retry-After": str(math.ceil(seconds))}
        return PlainJson({"detail": TOO_MANY_ATTEMPTS}, 429, headers)
    if not access.password.matches(password):
        return _refused(WRONG_PASSWORD, access)
    access.rate_limit.succeed(address)
    return _signed_in(access, request)


def _refused(detail: str, access: Access) -> Response:
    return PlainJson({"detail": with_command_name(detail), "login": access.origins.login}, 401)


def _signed_in(access: Access, request: Request) -> Response:
    response = Response(status_code=204)
    response.set_cookie(
        access.origins.cookie,
        access.cookies.create(access.password.stamp),
        max_age=COOKIE_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=access.origins.is_secure_for(request.headers["host"].lower()),
    )
    return response
