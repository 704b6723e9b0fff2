"""The agent's memory and skills: what it remembers, changing that, and reading its skills.

Memory grants nothing: the agent itself writes it. Skills are only shown; they are installed and
changed as files.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field

from gateway.people import known_people
from gateway.process.config_loader import config_of_home
from hermes_agent import skills
from hermes_agent.memory.facts import AgentMemory, MemoryConflictError
from hermes_agent.memory.files import MEMORY_KINDS, used_characters
from hermes_agent.project.trust import assess_project
from hermes_agent.tools.base import ToolError
from hermes_conversation.extensions import plugin_skills
from hermes_core.paths import person_memory_path
from hermes_dashboard.models.text import Identifier, Text, View, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from gateway.people import KnownPerson
    from hermes_agent.skills import Skill
    from hermes_dashboard.context import DashboardContext

MemoryTarget = Literal["memory", "user"]
MAX_ENTRIES = 1000
Entry = Annotated[str, Field(max_length=20_000)]
Entries = Annotated[list[Entry], Field(max_length=MAX_ENTRIES)]


TARGETS: Final[tuple[MemoryTarget, ...]] = ("memory", "user")
MAX_FILES: Final = 200


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


class SkillItem(View):
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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of memory and skills."""
    routes = ResourceRouter("/api", tag="memory")
    _add_people(routes, context)
    _add_memory(routes, context)
    _add_skills(routes, context)
    return routes


def _add_memory(routes: ResourceRouter, context: DashboardContext) -> None:
    memory = AgentMemory(context.db)

    @routes.get("/memory", responses=problems(503))
    def show_memory() -> MemoryView:
        """What the agent remembers of the work and of the user."""
        return MemoryView(
            items=[_view(memory, target, memory.entries(target)) for target in TARGETS]
        )

    @routes.put("/memory/{target}", responses=problems(400, 409, 503))
    def change_memory(target: MemoryTarget, change: MemoryChange) -> MemoryFileView:
        """Replace the entries of a file, unless it was changed since the page showed it."""
        return _rewrite(memory, target, change)


def _add_people(routes: ResourceRouter, context: DashboardContext) -> None:
    def known() -> dict[str, KnownPerson]:
        people = known_people(context.db, config_of_home())
        return {each.person.folder_name: each for each in people}

    @routes.get("/memory/people", responses=problems(503))
    def list_people() -> PersonMemoryList:
        """What the agent remembers of other people, who see only their own notes."""
        people = known()
        found = []
        for folder in sorted({*people, *_stored_folders(context)}):
            memory = AgentMemory(context.db, person_memory_path(folder))
            items = [_view(memory, target, memory.entries(target)) for target in TARGETS]
            if any(item.entries for item in items):
                found.append(_person_memory(folder, people.get(folder), items))
        return PersonMemoryList(items=found)

    @routes.put("/memory/people/{folder}/{target}", responses=problems(400, 404, 409, 503))
    def change_person(
        folder: Identifier, target: MemoryTarget, change: MemoryChange
    ) -> MemoryFileView:
        """Replace the entries of a person's file, unless it was changed meanwhile."""
        if folder not in {*known(), *_stored_folders(context)}:
            raise HTTPException(404, f"No notes of a person {folder!r}.")
        memory = AgentMemory(context.db, person_memory_path(folder))
        return _rewrite(memory, target, change)


def _stored_folders(context: DashboardContext) -> list[str]:
    """Folders of people who may have no access any longer."""
    folder = context.home / "memories" / "people"
    return [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _person_memory(
    folder: str, known: KnownPerson | None, items: list[MemoryFileView]
) -> PersonMemory:
    return PersonMemory(
        folder=folder,
        name="" if known is None else known.name or known.person.user_id,
        platform="" if known is None else known.person.platform,
        items=items,
    )


def _rewrite(memory: AgentMemory, target: MemoryTarget, change: MemoryChange) -> MemoryFileView:
    try:
        return _view(memory, target, memory.rewrite(target, change.seen, change.entries))
    except MemoryConflictError as error:
        raise HTTPException(409, str(error)) from error
    except ToolError as error:
        raise HTTPException(400, str(error)) from error


def _view(memory: AgentMemory, target: MemoryTarget, entries: list[str]) -> MemoryFileView:
    return MemoryFileView(
        target=target,
        path=str(memory.path(target)),
        entries=entries,
        characters=used_characters(entries),
        max_characters=MEMORY_KINDS[target].characters,
    )


def _add_skills(routes: ResourceRouter, context: DashboardContext) -> None:
    def find() -> list[Skill]:
        return skills.find_skills(
            context.home, assess_project(context.start_folder).trusted, plugin_skills()
        )

    @routes.get("/skills")
    def list_skills() -> SkillList:
        """The skills of the Hermes folder, of the dashboard's folder and of plugins."""
        return SkillList.model_validate({"folder": context.home / skills.FOLDER, "items": find()})

    @routes.get("/skills/{name}", responses=problems(400, 404))
    def show_skill(name: Identifier) -> SkillText:
        """The instructions of a skill, as the model reads them."""
        skill = next((each for each in find() if each.name == name), None)
        if skill is None:
            raise HTTPException(404, f"Unknown skill: {name}")
        try:
            text = skills.split_front_matter(skills.skill_text(skill))[1]
        except ToolError as error:
            raise HTTPException(400, str(error)) from error
        return SkillText(
            name=name, text=text, files=list(islice(skills.skill_files(skill), MAX_FILES))
        )
