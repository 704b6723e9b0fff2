"""Reading an export file: first all of it to see that it is whole, then session by session."""

from __future__ import annotations

import hashlib
import json
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from hermes_core.errors import PortableFileError
from hermes_state.portable.export_writer import FORMAT, VERSION
from hermes_state.portable.validation import check_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Line(NamedTuple):
    """One session of the file."""

    number: int
    raw: bytes
    record: dict[str, Any]

    @property
    def session_id(self) -> str:
        """The session's id where it was exported."""
        return str(self.record["session"]["id"])


class Summary(NamedTuple):
    """What a file that is whole contains."""

    sessions: int
    messages: int
    is_redacted: bool


class ExportFile:
    """An export; *file* can be read twice, *name* is for messages."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name

    def verify(self, each: Callable[[Line], object] | None = None) -> Summary:
        """Read everything; PortableFileError names the first line that is wrong.

        *each* is called with every session, before it is known whether the rest is whole.
        """
        digest = hashlib.sha256()
        header: dict[str, Any] | None = None
        known: set[str] = set()
        messages = 0
        for number, raw in self._raw_lines():
            value = self._parse(number, raw)
            if header is None:
                header = self._header(value)
            elif "end" in value:
                return self._end(number, value, digest.hexdigest(), (len(known), messages), header)
            else:
                line = self._line(number, raw, value)
                if line.session_id in known:
                    raise self._error(number, f"session {line.session_id} comes twice")
                known.add(line.session_id)
                messages += len(line.record["messages"])
                if each is not None:
                    each(line)
            digest.update(raw)
        if header is None:
            raise PortableFileError(f"{self._name} is empty")
        raise PortableFileError(
            f"{self._name} ends after line {len(known) + 1}, before its last line: the rest is "
            "missing. Nothing was changed; export it again."
        )

    def sessions(self) -> Iterator[Line]:
        """Every session of a file that was verified."""
        for number, raw in self._raw_lines():
            value = self._parse(number, raw)
            if number > 1 and "end" in value:
                return
            if number > 1:
                yield self._line(number, raw, value)

    def _raw_lines(self) -> Iterator[tuple[int, bytes]]:
        self._file.seek(0)
        return enumerate(self._file, 1)

    def _parse(self, number: int, raw: bytes) -> dict[str, Any]:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if number == 1:
                raise self._foreign() from error
            raise self._error(number, "it is no JSON") from error
        if not isinstance(value, dict):
            raise self._foreign() if number == 1 else self._error(number, "it is no object")
        if not raw.endswith(b"\n"):
            raise self._error(number, "it is cut off")
        return value

    def _header(self, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("format") != FORMAT:
            raise self._foreign()
        if value.get("version") != VERSION:
            raise PortableFileError(
                f"{self._name} has version {value.get('version')} of the format; this release "
                f"knows {VERSION}. Update Hermes; nothing was changed."
            )
        return value

    def _line(self, number: int, raw: bytes, value: dict[str, Any]) -> Line:
        try:
            check_record(value)
        except (ValueError, TypeError) as error:
            raise self._error(number, str(error)) from error
        return Line(number, raw, value)

    def _end(
        self,
        number: int,
        value: dict[str, Any],
        digest: str,
        counted: tuple[int, int],
        header: dict[str, Any],
    ) -> Summary:
        if (value.get("sessions"), value.get("messages")) != counted:
            raise self._error(number, "it counts other sessions and messages than there are")
        whole = {"end": FORMAT, "messages": counted[1], "sessions": counted[0], "sha256": digest}
        if value != whole:
            raise self._error(number, "the checksum is of other lines: the file was changed")
        if self._file.read(1):
            raise self._error(number + 1, "something follows the last line")
        return Summary(*counted, is_redacted=bool(header.get("redacted")))

    def _error(self, number: int, why: str) -> PortableFileError:
        return PortableFileError(
            f"{self._name}, line {number}: {why}. The file is damaged; nothing was changed."
        )

    def _foreign(self) -> PortableFileError:
        return PortableFileError(
            f"{self._name}, line 1: this is no export of Hermes. It takes files that "
            "`hermes sessions export` wrote; nothing was changed."
        )
