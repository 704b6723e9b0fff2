"""Dialogs to rewind a conversation and to switch between its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, Tree

from hermes_core import human_format
from hermes_core.terminal_text import clean, fit, one_line
from hermes_tui.dialogs import ListDialog

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widgets.tree import TreeNode

    from tui_gateway.protocol import PromptSummary, RelatedSession

NAME_COLUMNS: Final = 37


class RewindAction(NamedTuple):
    """The action (`back`, `branch` or `redo`) and its message."""

    action: str
    message_id: int = 0


class RewindDialog(ListDialog[RewindAction | None]):
    """A list of the user's messages to rewind to, the latest at the bottom."""

    HEADING = "Rewind to before which message?"
    KEYS = "Enter rewind · b branch · r redo · Esc cancel"
    BINDINGS: ClassVar = [Binding("b", "branch"), Binding("r", "redo")]

    def __init__(self, prompts: list[PromptSummary]) -> None:
        super().__init__([prompt.text for prompt in prompts], len(prompts) - 1)
        self._prompts = prompts

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Rewind to before this message."""
        self.dismiss(RewindAction("back", self._prompts[event.option_index].message_id))

    def action_branch(self) -> None:
        """Create a branch that ends before the selected message."""
        index = self.query_one(OptionList).highlighted
        if index is not None:
            self.dismiss(RewindAction("branch", self._prompts[index].message_id))

    def action_redo(self) -> None:
        """Redo the last rewind."""
        self.dismiss(RewindAction("redo"))


class BranchTree(ModalScreen[str]):
    """The tree of branches; returns the selected session ID, or an empty text."""

    BINDINGS: ClassVar = [
        Binding("escape", "stay"),
        Binding("pageup", "page('up')"),
        Binding("pagedown", "page('down')"),
    ]

    def __init__(self, sessions: list[RelatedSession], current: str) -> None:
        super().__init__()
        self._sessions = sessions
        self._current = current

    def compose(self) -> ComposeResult:
        """The tree."""
        with Vertical(classes="dialog wide"):
            yield Static("This conversation and its branches", classes="heading")
            yield self._tree()
            yield Static(Content("Enter open · Esc cancel"), classes="keys")

    def _tree(self) -> Tree[str]:
        tree: Tree[str] = Tree("conversations")
        tree.show_root = False
        tree.root.expand()
        nodes: dict[str, TreeNode[str]] = {}
        for row in self._sessions:  # oldest first, so parents precede their branches
            parent = nodes.get(row.parent_session_id or "", tree.root)
            nodes[row.id] = parent.add(_label(row, self._current), data=row.id, expand=True)
        return tree

    def on_mount(self) -> None:
        """Focus the tree."""
        self.query_one(Tree).focus()

    async def action_page(self, direction: str) -> None:
        """Scroll the tree a page `up` or `down`."""
        await self.query_one(Tree).run_action(f"page_{direction}")

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        """Open the selected conversation."""
        self.dismiss(event.node.data or "")

    def action_stay(self) -> None:
        """Cancel."""
        self.dismiss("")


def _label(row: RelatedSession, current: str) -> str:
    name = one_line(clean(row.title or row.id))
    mark = " ← current" if row.id == current else ""
    count = human_format.plural(row.message_count, "message")
    return f"{fit(name, NAME_COLUMNS)} ({count}){mark}".replace("[", r"\[")
