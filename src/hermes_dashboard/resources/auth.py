"""Getting in: a link from the terminal, or the password."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, Field

from hermes_dashboard.auth.gate import CALLER, cookies
from hermes_dashboard.auth.tokens import COOKIE_SECONDS
from hermes_dashboard.errors import PlainJson

if TYPE_CHECKING:
    from hermes_dashboard.auth.access import Access

LINK_IS_USED: Final = "This link is used up, or too old. Run `hermes dashboard` for a new one."
WRONG: Final = "This is not the password."
ONLY_LINKS: Final = "This dashboard is opened with a link; run `hermes dashboard`."
TOO_OFTEN: Final = "That was wrong too often. Wait a minute."
ONLY_PROGRAMS: Final = "Links are made for programs that know the token in run/dashboard.json."
NOBODY: Final = "?"

UNAUTHORIZED: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "invalid JSON"},
    401: {"description": "not authenticated"},
}
LIMITED: Final[dict[int | str, dict[str, Any]]] = {
    **UNAUTHORIZED,
    429: {"description": "wrong too often; Retry-After says how long to wait"},
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


def router(access: Access) -> APIRouter:
    """The routes under `/api/auth`."""
    routes = APIRouter(prefix="/api/auth", tags=["auth"])

    @routes.post("/launch", status_code=204, responses=UNAUTHORIZED)
    def launch(wish: Launch, request: Request) -> Response:
        """Exchange the token of a sign-in link for a cookie."""
        if access.doors.login != "link" or not access.links.use(wish.token):
            return _refused(LINK_IS_USED, access)
        return _let_in(access, request)

    @routes.post("/login", status_code=204, responses=LIMITED)
    def login(wish: Login, request: Request) -> Response:
        """Exchange the password for a cookie."""
        if access.doors.login != "password":
            return _refused(ONLY_LINKS, access)
        return _judged(wish.password, access, request)

    @routes.post("/logout", status_code=204)
    def logout(request: Request) -> Response:
        """Sign out: invalidate the cookie."""
        for one in cookies(request.scope, access.doors.cookie):
            access.cookies.forget(one)
        left = Response(status_code=204)
        left.delete_cookie(access.doors.cookie, path="/", httponly=True, samesite="strict")
        return left

    @routes.post("/links", responses={403: {"description": "not for pages"}})
    def link(request: Request) -> LoginLink:
        """Create a sign-in link, for `hermes dashboard` when an instance is already running."""
        if request.scope[CALLER] != "bearer":
            raise HTTPException(403, ONLY_PROGRAMS)
        return LoginLink(url=access.link())

    return routes


def _judged(password: str, access: Access, request: Request) -> Response:
    """Let in who knows the password, and slow down who guesses."""
    address = request.client.host if request.client else NOBODY
    seconds = access.rates.begin(address)
    if seconds:
        headers = {"Retry-After": str(math.ceil(seconds))}
        return PlainJson({"detail": TOO_OFTEN}, 429, headers)
    if not access.password.fits(password):
        return _refused(WRONG, access)
    access.rates.succeed(address)
    return _let_in(access, request)


def _refused(detail: str, access: Access) -> Response:
    return PlainJson({"detail": detail, "login": access.doors.login}, 401)


def _let_in(access: Access, request: Request) -> Response:
    welcome = Response(status_code=204)
    welcome.set_cookie(
        access.doors.cookie,
        access.cookies.make(access.password.stamp),
        max_age=COOKIE_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=access.doors.is_secure_for(request.headers["host"].lower()),
    )
    return welcome
