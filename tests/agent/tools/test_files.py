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


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("café", "latin-1", "windows-1252"),
        ("# Größe \u2013 “ü”\nprint('x')", "cp1252", "windows-1252"),
        ("# 配置文件\nname = '测试'", "gbk", "GB18030"),
        ("# это проверка\nprint(1)", "cp1251", "windows-1251"),
        ("# これはテストです", "shift_jis", "Shift_JIS"),
        ("# 안녕하세요", "euc_kr", "EUC-KR"),
    ],
)
def test_another_encoding_is_named_and_kept(bench, file, text, codec, name):
    file.write_bytes(f"{text}\nend\n".encode(codec))
    read = bench("read_file", path="a.txt")
    assert read["content"].splitlines()[0] == f"1|{text.splitlines()[0]}"
    assert read["encoding"] == name
    patched = bench("patch", path="a.txt", old_string="end", new_string=text[:6])
    assert patched["encoding"] == name
    assert file.read_bytes() == f"{text}\n{text[:6]}\n".encode(codec)
    written = bench("write_file", path="a.txt", content=f"{text}!")
    assert written["encoding"] == name
    assert file.read_bytes() == f"{text}!".encode(codec)


def test_text_that_an_encoding_does_not_have_is_not_mixed_into_it(bench, file):
    file.write_bytes(b"caf\xe9 one\n")
    result = bench("patch", path="a.txt", old_string="one", new_string="Привет")
    assert "windows-1252" in result["error"]
    assert "П" in result["error"]
    assert file.read_bytes() == b"caf\xe9 one\n"
    bench("read_file", path="a.txt")
    assert bench("write_file", path="a.txt", content="Привет")["encoding"].startswith("UTF-8")
    assert file.read_text() == "Привет"


def test_a_damaged_utf8_file_keeps_its_bytes(bench, file):
    file.write_bytes("größer, schöner, älter ".encode() + b"\xff end\n")
    assert "größer" in bench("read_file", path="a.txt")["content"]
    bench("patch", path="a.txt", old_string="end", new_string="é")
    assert file.read_bytes() == "größer, schöner, älter ".encode() + b"\xff \xc3\xa9\n"


def test_a_file_that_was_not_read_is_not_replaced(bench, file):
    file.write_text("of the user")
    refused = bench("write_file", path="a.txt", content="new")
    assert "was not read" in refused["error"]
    assert file.read_text() == "of the user"
    assert bench("write_file", path="a.txt", content="new")["error"] is None
    assert file.read_text() == "new"
    assert bench("write_file", path="a.txt", content="newer")["error"] is None  # it knows its own


def test_a_file_that_was_changed_since_it_was_read_is_not_replaced(bench, file):
    file.write_text("one\ntwo\n")
    bench("read_file", path="a.txt")
    file.write_text("one\nof the user\n")
    refused = bench("write_file", path="a.txt", content="three\n")
    assert "has changed since" in refused["error"]
    assert "-two\n+of the user" in refused["changes"]
    assert file.read_text() == "one\nof the user\n"
    file.write_text("one\nagain\n")
    assert "has changed" in bench("write_file", path="a.txt", content="three\n")["error"]
    assert bench("write_file", path="a.txt", content="three\n")["error"] is None
    assert file.read_text() == "three\n"


def test_a_patch_does_not_hide_a_change_that_the_agent_has_not_read(bench, file):
    file.write_text("one\ntwo\n")
    bench("read_file", path="a.txt")
    file.write_text("one\ntwo\nof the user\n")
    assert bench("patch", path="a.txt", old_string="one", new_string="ONE")["error"] is None
    refused = bench("write_file", path="a.txt", content="three\n")
    assert "+of the user" in refused["changes"]
    assert file.read_text() == "ONE\ntwo\nof the user\n"


def test_a_patch_of_a_file_that_was_not_read_does_not_allow_to_replace_it(bench, file):
    file.write_text("one\nof the user\n")
    assert bench("patch", path="a.txt", old_string="one", new_string="ONE")["error"] is None
    assert "was not read" in bench("write_file", path="a.txt", content="three\n")["error"]


def test_after_a_patch_a_file_is_known(bench, file):
    file.write_text("one\n")
    bench("read_file", path="a.txt")
    bench("patch", path="a.txt", old_string="one", new_string="two")
    assert bench("write_file", path="a.txt", content="three\n")["error"] is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\ny\n"),
        ("\ufeffa\r\n".encode("utf-16-le"), "\ufeffx\r\ny\r\n".encode("utf-16-le")),
        (b"a\r\nb\n", b"x\ny\n"),
    ],
)
def test_a_replaced_file_keeps_line_ends_and_mark(bench, file, before, after):
    file.write_bytes(before)
    bench("read_file", path="a.txt")
    bench("write_file", path="a.txt", content="x\ny\n")
    assert file.read_bytes() == after


def test_a_read_only_file_stays(bench, file):
    file.write_text("fixed")
    file.chmod(0o444)
    bench("read_file", path="a.txt")
    assert "read-only" in bench("write_file", path="a.txt", content="x")["error"]
    assert "chmod" in bench("patch", path="a.txt", old_string="fixed", new_string="x")["error"]
    assert file.read_text() == "fixed"


def test_other_names_of_a_replaced_file_are_mentioned(bench, file):
    file.write_text("one")
    os.link(file, bench.cwd / "other")
    result = bench("patch", path="a.txt", old_string="one", new_string="two")
    assert "hard links" in result["note"]
    assert (bench.cwd / "other").read_text() == "one"


def test_a_folder_with_a_link_to_itself_is_listed(bench):
    (bench.cwd / "loop").symlink_to("loop")
    (bench.cwd / "b").touch()
    assert bench("read_file", path=".")["entries"] == ["b", "loop"]


def test_errors_name_the_path_as_it_was_given(bench):
    (bench.cwd / "dangling").symlink_to("nowhere")
    for path in ("sub/x", "dangling"):
        assert bench("read_file", path=path)["error"] == f"No such file or directory: {path}"
    assert bench("patch", path=".", old_string="a", new_string="b")["error"].endswith(
        "is a folder."
    )


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
    bench("read_file", path="link")
    assert bench("write_file", path="link", content="new")["new"] is False
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert (bench.cwd / "link").is_symlink()
    assert sorted(path.name for path in bench.cwd.iterdir()) == ["link", "run.sh"]


def test_a_failed_write_leaves_the_old_file(bench, file, monkeypatch):
    file.write_text("old")
    bench("read_file", path="a.txt")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space" in bench("write_file", path="a.txt", content="new")["error"]
    assert file.read_text() == "old"
    assert list(bench.cwd.iterdir()) == [file]


def test_text_that_is_no_unicode_is_refused(bench, file):
    assert "Unicode" in bench("write_file", path="a.txt", content="\ud800")["error"]
    assert not file.exists()


def test_an_error_has_no_empty_list_of_similar_lines(bench, file):
    file.write_text("one\n")
    result = bench("patch", path="a.txt", old_string="nothing like it", new_string="z")
    assert "not in the file" in result["error"]
    assert "closest" not in result


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


def test_windows_line_ends_stay(bench, file):
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    bench("patch", path="a.txt", old_string="one\ntwo", new_string="1\n2\n2b")
    assert file.read_bytes() == b"1\r\n2\r\n2b\r\nthree\r\n"
    bench("patch", path="a.txt", old_string="three", new_string="3\n4")
    assert file.read_bytes() == b"1\r\n2\r\n2b\r\n3\r\n4\r\n"


def test_bytes_that_are_no_utf8_stay_as_they_are(bench, file):
    file.write_bytes(b"caf\xe9 one\n")
    bench("patch", path="a.txt", old_string="one", new_string="two")
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
        added = file.read_bytes().removeprefix(before).removesuffix(after)
        assert added in {new.encode(codec) for codec in ("utf-8", "cp1252", "gb18030")}
        assert file.read_bytes() == before + added + after


LOOSE = [
    ("\ta:\n\t\tgo(1)\n", "a:\n        go(1)", "b:\n        go(2)", "\tb:\n\t\tgo(2)\n"),
    ("\ta:\n\t\tgo(1)\n", "  a:\n    go(1)\n", "  b:\n    go(2)\n", "\tb:\n\t\tgo(2)\n"),
    ("say \u201chi\u201d\n", 'say "hi"', "say no", "say no\n"),
    ("a\u00a0b c\n", "a b c", "d", "d\n"),
    ("nai\u0308ve\n", "na\u00efve", "wise", "wise\n"),
    ("one  \ntwo\n", "one\ntwo", "1\n2", "1\n2\n"),
    ("x\r\n  one \r\n  two\r\n", "  one\n  two", "  1\n  2", "x\r\n  1\r\n  2\r\n"),
    ("one\ntwo\n", "1|one\n2|two", "1|eins\n2|zwei", "eins\nzwei\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "old", "new", "after"), LOOSE)
def test_a_piece_that_looks_the_same_is_replaced_and_the_difference_named(
    bench, file, before, old, new, after
):
    file.write_bytes(before.encode())
    result = bench("patch", path="a.txt", old_string=old, new_string=new)
    assert result["error"] is None
    assert file.read_bytes() == after.encode()
    assert result["not_exact"]


def test_the_difference_is_named_by_its_character(bench, file):
    file.write_text("say \u201chi\u201d\n")
    result = bench("patch", path="a.txt", old_string='say "hi"', new_string="no")
    assert "U+201C LEFT DOUBLE QUOTATION MARK" in result["not_exact"]
    file.write_text("\tif x:\n")
    result = bench("patch", path="a.txt", old_string="    if x:", new_string="    if y:")
    assert result["not_exact"] == "line 1: the file has a tab, not a space"


def test_two_places_that_look_the_same_are_refused(bench, file):
    file.write_text("a \nb\n\ta\n\tb\n")
    result = bench("patch", path="a.txt", old_string="  a\n  b", new_string="x")
    assert "2 places look like it" in result["error"]
    assert result["lines"] == [1, 3]
    assert file.read_text() == "a \nb\n\ta\n\tb\n"


def test_several_edits_in_one_call(bench, file):
    file.write_text("one\ntwo\ntwo\n")
    edits = [
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2", "replace_all": True},
        {"old_string": "1\n2", "new_string": "3"},
    ]
    result = bench("patch", path="a.txt", edits=edits)
    assert (result["error"], result["replaced"]) == (None, 4)
    assert file.read_text() == "3\n2\n"


def test_of_several_edits_all_or_none_are_made(bench, file):
    file.write_text("one\ntwo\n")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "tow", "new_string": "2"}]
    result = bench("patch", path="a.txt", edits=edits)
    assert result["error"].startswith("Edit 2: ")
    assert result["closest"] == ["2|two"]
    assert file.read_text() == "one\ntwo\n"
    assert "must be a list" in bench("patch", path="a.txt", edits="x")["error"]


def test_lines_of_a_diff_are_those_of_read_file(bench, file):
    file.write_bytes("one\x0ctwo\u2028three\x85four\nfive\n".encode())
    result = bench("patch", path="a.txt", old_string="five", new_string="5")
    assert "@@ -1,2 +1,2 @@" in result["diff"]


def test_a_change_in_a_long_line_is_shown_alone(bench, file):
    words = ["word"] * 2_000
    file.write_text(" ".join([*words, "old", *words]))
    result = bench("patch", path="a.txt", old_string="old", new_string="new")
    assert "word old word" in result["diff"]
    assert "word new word" in result["diff"]
    assert len(result["diff"]) < 2_000
