"""Models of the agent's memory and skills."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text

MemoryTarget = Literal["memory", "user"]
MAX_ENTRIES = 1000
Entry = Annotated[str, Field(max_length=20_000)]
Entries = Annotated[list[Entry], Field(max_length=MAX_ENTRIES)]


class MemoryFileView(BaseModel):
    """One of the two files of the memory; its size is limited, because every prompt has it."""

    target: MemoryTarget
    path: Text
    entries: list[Text]
    characters: int
    max_characters: int


class MemoryView(BaseModel):
    """What the agent remembers."""

    items: list[MemoryFileView]


class PersonMemory(BaseModel):
    """What the agent remembers in conversations of another person."""

    folder: Text = Field(description="the folder of the notes, below `memories/people`")
    name: Text = Field(description="empty if the person is no longer known")
    platform: Text
    items: list[MemoryFileView]


class PersonMemoryList(BaseModel):
    """The people with notes."""

    items: list[PersonMemory]


class MemoryChange(BaseModel):
    """New entries of a file, and those that the page has shown."""

    seen: Entries
    entries: Entries


class SkillItem(BaseModel):
    """A skill; one with a problem is not offered to the model."""

    name: Text
    description: Text
    folder: Text
    problem: Text


class SkillList(BaseModel):
    """The skills of new conversations on the page."""

    folder: Text = Field(description="the folder for skills of the user's own")
    items: list[SkillItem]


class SkillText(BaseModel):
    """The instructions of a skill, and the names of its other files."""

    name: Text
    text: Text
    files: list[Text]
