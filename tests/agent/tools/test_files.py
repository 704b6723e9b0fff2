"""Files are read in pages, written whole, and changed exactly where asked."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def file(bench):
    return bench.cwd / "a.txt"


def test_lines_are_numbered(bench, file):
    file.write_text("one\ntwo\r\nthree")
    result = bench("read_file", path="a.txt")
    assert result == {"content": "1|one\n2|two\n3|three", "lines": 3, "error": None}


def test_a_long_file_comes_in_pages(bench, file):
    file.write_text("".join(f"line {number}\n" for number in range(1, 1201)))
    first = bench("read_file", path="a.txt")
    assert (first["lines"], first["next_offset"]) == (1200, 501)
    second = bench("read_file", path="a.txt", offset=1199, limit=10)
    assert second["content"] == "1199|line 1199\n1200|line 1200"
    assert "1200 lines only" in bench("read_file", path="a.txt", offset=5000)["error"]


def test_long_lines_and_pages_are_cut(bench, file):
    file.write_text("x" * 5000 + "\n" + ("y" * 1999 + "\n") * 100)
    result = bench("read_file", path="a.txt")
    assert "line cut" in result["content"].splitlines()[0]
    assert len(result["content"]) < 63_000
    assert result["next_offset"] < 40


def test_an_empty_file_is_empty(bench, file):
    file.touch()
    assert bench("read_file", path="a.txt") == {"content": "", "lines": 0, "error": None}


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "PNG image"),
        (b"\xff\xd8\xff\xe0\0", "JPEG image"),
        (b"\x7fELF\x02", "program"),
        (b"abc\0def", "binary file"),
    ],
)
def test_what_is_no_text_is_refused_by_name(bench, file, data, what):
    file.write_bytes(data)
    assert what in bench("read_file", path="a.txt")["error"]
    assert what in bench("patch", path="a.txt", old_string="a", new_string="b")["error"]


def test_text_in_other_encodings_is_read(bench, file):
    file.write_bytes("ünï\n".encode("utf-16"))
    assert bench("read_file", path="a.txt")["content"] == "1|ünï"
    file.write_bytes("\ufeffa\n".encode())
    assert bench("read_file", path="a.txt")["content"] == "1|a"
    file.write_bytes(b"caf\xe9\n")
    assert bench("read_file", path="a.txt")["content"] == "1|caf\ufffd"


def test_a_file_that_is_too_large_is_not_edited(bench, file, monkeypatch):
    monkeypatch.setattr("hermes_agent.tools.files.MAX_EDIT_BYTES", 10)
    file.write_text("one two three")
    result = bench("patch", path="a.txt", old_string="one", new_string="1")
    assert "too large to edit" in result["error"]
    assert file.read_text() == "one two three"


def test_a_folder_is_listed(bench):
    (bench.cwd / "sub").mkdir()
    (bench.cwd / "b").touch()
    assert bench("read_file", path=".")["entries"] == ["b", "sub/"]


def test_what_is_no_file_is_refused(bench):
    os.mkfifo(bench.cwd / "pipe")
    assert "not a regular file" in bench("read_file", path="pipe")["error"]
    assert "not a regular file" in bench("write_file", path="pipe", content="x")["error"]
    assert "No such file" in bench("read_file", path="none")["error"]
    assert "is a folder" in bench("write_file", path=".", content="x")["error"]
    assert "not a path" in bench("read_file", path="")["error"]


def test_home_is_expanded(bench, tmp_path):
    (tmp_path / "user" / "note").write_text("hi")
    assert bench("read_file", path="~/note")["content"] == "1|hi"
    assert "Unknown user" in bench("read_file", path="~nobody-here/x")["error"]


def test_a_new_file_gets_its_folders(bench):
    result = bench("write_file", path="x/y/z.txt", content="é")
    assert (result["bytes"], result["new"]) == (2, True)
    assert (bench.cwd / "x/y/z.txt").read_text() == "é"


def test_writing_keeps_permissions_and_links(bench, file):
    script = bench.cwd / "run.sh"
    script.write_text("old")
    script.chmod(0o755)
    (bench.cwd / "link").symlink_to(script)
    assert bench("write_file", path="link", content="new")["new"] is False
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert (bench.cwd / "link").is_symlink()
    assert sorted(path.name for path in bench.cwd.iterdir()) == ["link", "run.sh"]


def test_a_failed_write_leaves_the_old_file(bench, file, monkeypatch):
    file.write_text("old")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space" in bench("write_file", path="a.txt", content="new")["error"]
    assert file.read_text() == "old"
    assert list(bench.cwd.iterdir()) == [file]


def test_text_that_is_no_unicode_is_refused(bench, file):
    assert "Unicode" in bench("write_file", path="a.txt", content="\ud800")["error"]
    assert not file.exists()


def test_a_patch_replaces_exactly_one_place(bench, file):
    file.write_text("def a():\n    pass\n\ndef b():\n    pass\n")
    result = bench(
        "patch", path="a.txt", old_string="def a():\n    pass", new_string="def a():\n    go()"
    )
    assert file.read_text() == "def a():\n    go()\n\ndef b():\n    pass\n"
    assert "-    pass\n+    go()" in result["diff"]


def test_a_piece_that_occurs_often_needs_to_be_told_apart(bench, file):
    file.write_text("x\ny\nx\n")
    result = bench("patch", path="a.txt", old_string="x", new_string="z")
    assert "occurs 2 times" in result["error"]
    assert result["lines"] == [1, 3]
    assert file.read_text() == "x\ny\nx\n"
    assert (
        bench("patch", path="a.txt", old_string="x", new_string="z", replace_all=True)["replaced"]
        == 2
    )
    assert file.read_text() == "z\ny\nz\n"


def test_a_piece_that_is_not_there_is_answered_with_what_looks_like_it(bench, file):
    file.write_text("import os\n\ndef compute_total(items):\n\treturn sum(items)\n")
    result = bench("patch", path="a.txt", old_string="def compute_totals(items):", new_string="x")
    assert result["closest"] == ["3|def compute_total(items):"]
    spaces = bench("patch", path="a.txt", old_string="(items):\n    return sum", new_string="x")
    assert "whitespace" in spaces["hint"]


def test_windows_line_ends_stay(bench, file):
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    bench("patch", path="a.txt", old_string="one\ntwo", new_string="1\n2\n2b")
    assert file.read_bytes() == b"1\r\n2\r\n2b\r\nthree\r\n"
    bench("patch", path="a.txt", old_string="three", new_string="3\n4")
    assert file.read_bytes() == b"1\r\n2\r\n2b\r\n3\r\n4\r\n"


def test_bytes_that_are_no_utf8_stay_as_they_are(bench, file):
    file.write_bytes(b"caf\xe9 one\n")
    assert "\ufffd" in bench("patch", path="a.txt", old_string="one", new_string="two")["diff"]
    assert file.read_bytes() == b"caf\xe9 two\n"
    file.write_bytes("ab\n".encode("utf-16-be"))
    file.write_bytes(b"\xfe\xff" + "ab\n".encode("utf-16-be"))
    bench("patch", path="a.txt", old_string="b", new_string="ü")
    assert file.read_bytes() == b"\xfe\xff" + "aü\n".encode("utf-16-be")


def test_useless_patches_are_refused(bench, file):
    file.write_text("x")
    assert "empty" in bench("patch", path="a.txt", old_string="", new_string="y")["error"]
    assert "same" in bench("patch", path="a.txt", old_string="x", new_string="x")["error"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    new=st.text(alphabet="ab\n é", max_size=10),
)
def test_a_patch_changes_nothing_around_it(bench, file, before, after, new):
    """Whatever bytes surround a piece, they are the same afterwards."""
    before, after = (part.replace(b"\0", b"").replace(b"\r", b"") for part in (before, after))
    before = b"#" + before
    file.write_bytes(before + b"@@MARK@@" + after)
    result = bench("patch", path="a.txt", old_string="@@MARK@@", new_string=new)
    if result["error"] is None:
        assert file.read_bytes() == before + new.encode() + after
