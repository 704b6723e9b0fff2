"""The API of the tab."""

from fastapi import APIRouter
from hermes_constants import get_hermes_home

router = APIRouter()


@router.get("/home")
def home():
    return {"home": str(get_hermes_home())}
