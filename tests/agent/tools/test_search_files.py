"""Searching files, with ripgrep and without."""

from __future__ import annotations

import shutil
import sys

import pytest

from hermes_agent.tools import search_files

RG = shutil.which("rg")


@pytest.fixture(params=["ripgrep", "RE2", "without RE2"])
def tree(bench, request, monkeypatch):
    if request.param == "ripgrep" and RG is None:
        pytest.skip("no ripgrep here")
    if request.param != "ripgrep":
        monkeypatch.setattr("hermes_core.system_programs.SYSTEM_FOLDERS", ())
        monkeypatch.setenv("PATH", "/nowhere")
    if request.param == "without RE2":
        monkeypatch.setitem(sys.modules, "re2", None)
    (bench.cwd / "src").mkdir()
    (bench.cwd / "src" / "a.py").write_text("import os\n\ndef find_me():\n    pass\n")
    (bench.cwd / "src" / "b.txt").write_text("find_me too\n")
    (bench.cwd / ".hidden").write_text("find_me\n")
    (bench.cwd / "bin.dat").write_bytes(b"\0find_me\n")
    (bench.cwd / "caf\u00e9.txt").write_text("x" * 2000 + " find_long\n")
    return bench


def test_contents_are_found_with_file_and_line(tree):
    result = tree("search_files", pattern=r"find_\w+me|find_me")
    assert result["matches"] == ["src/a.py:3:def find_me():", "src/b.txt:1:find_me too"]
    assert result["count"] == 2


def test_a_glob_narrows_the_files(tree):
    assert tree("search_files", pattern="find_me", glob="*.py")["count"] == 1


@pytest.mark.parametrize(
    ("glob", "path", "found"),
    [
        ("src/**/*.py", ".", ["src/a.py", "src/pkg/c.py"]),
        ("src/*.py", ".", ["src/a.py"]),
        ("pkg/*.py", "src", ["src/pkg/c.py"]),
        ("src/pkg/*", ".", ["src/pkg/c.py"]),
        ("**/*.py", ".", ["src/a.py", "src/pkg/c.py"]),
        ("**/pkg/**", ".", ["src/pkg/c.py"]),
        ("*.{py,txt}", "src", ["src/a.py", "src/b.txt", "src/pkg/c.py"]),
        ("/src/*.py", ".", ["src/a.py"]),
        ("src/[a-b].*", ".", ["src/a.py", "src/b.txt"]),
        ("src/[!b-z].*", ".", ["src/a.py"]),
        ("src/?.py", ".", ["src/a.py"]),
        ("!pkg/**", "src", ["src/a.py", "src/b.txt"]),
        ("pkg/*.py", ".", []),
        ("src", ".", []),
    ],
)
@pytest.mark.parametrize("mode", ["content", "files"])
def test_a_glob_with_a_folder_counts_from_the_searched_folder(tree, mode, glob, path, found):
    (tree.cwd / "src" / "pkg").mkdir()
    (tree.cwd / "src" / "pkg" / "c.py").write_text("def find_me(): pass\n")
    pattern = {"pattern": "find_me", "glob": glob} if mode == "content" else {"pattern": glob}
    result = tree("search_files", path=path, mode=mode, **pattern)
    assert [match.partition(":")[0] for match in result["matches"]] == found


@pytest.mark.parametrize("mode", ["content", "files"])
def test_a_glob_may_start_with_the_folder_itself(tree, mode):
    for glob in ("./src/*.py", f"{tree.cwd}/src/*.py"):
        pattern = {"pattern": "find_me", "glob": glob} if mode == "content" else {"pattern": glob}
        result = tree("search_files", mode=mode, **pattern)
        assert [match.partition(":")[0] for match in result["matches"]] == ["src/a.py"]


def test_names_and_a_glob_both_apply(tree):
    (tree.cwd / "a.py").write_text("")
    result = tree("search_files", pattern="*.py", glob="src/**", mode="files")
    assert result["matches"] == ["src/a.py"]


def test_files_are_found_by_name(tree):
    assert tree("search_files", pattern="*.py", mode="files")["matches"] == ["src/a.py"]


def test_a_limit_holds_and_says_that_there_is_more(tree):
    result = tree("search_files", pattern="find_me", limit=1)
    assert (result["count"], result["more"]) == (1, True)


def test_long_lines_are_cut(tree):
    assert len(tree("search_files", pattern="x+ ?f?")["matches"][0]) < 320


def test_nothing_found_is_no_error(tree):
    assert tree("search_files", pattern="nowhere_to_be_seen") == {
        "matches": [],
        "count": 0,
        "error": None,
    }


def test_a_single_file_can_be_searched(tree):
    assert tree("search_files", pattern="import", path="src/a.py")["count"] == 1


def test_bad_patterns_and_paths_are_answered(tree):
    assert tree("search_files", pattern="(")["error"]
    assert "does not exist" in tree("search_files", pattern="x", path="none")["error"]


def test_a_stop_ends_the_search(tree):
    tree.cancel.request()
    assert "stopped" in tree("search_files", pattern="find_me")["incomplete"]


@pytest.mark.skipif(RG is None, reason="no ripgrep here")
def test_ripgrep_leaves_out_what_git_ignores(bench):
    (bench.cwd / ".git").mkdir()
    (bench.cwd / ".gitignore").write_text("out/\n")
    (bench.cwd / "out").mkdir()
    (bench.cwd / "out" / "x").write_text("find_me\n")
    assert bench("search_files", pattern="find_me")["count"] == 0


@pytest.mark.parametrize("tree", ["ripgrep", "RE2"], indirect=True)
def test_no_pattern_stalls_the_program(tree):
    """With backtracking this takes longer than the age of the universe."""
    (tree.cwd / "trap.txt").write_text("a" * 60 + "!\n")
    assert tree("search_files", pattern="(a+)+$", path="trap.txt")["count"] == 0


@pytest.mark.parametrize("tree", ["without RE2"], indirect=True)
def test_a_pattern_that_backtracks_for_ever_is_stopped_and_reported(tree, monkeypatch):
    monkeypatch.setattr(search_files, "MAX_MATCH_SECONDS", 0.5)
    (tree.cwd / "trap.txt").write_text("a" * 60 + "!\n")
    assert "takes too long" in tree("search_files", pattern="(a+)+$", path="trap.txt")["error"]
    assert tree("search_files", pattern="a+!", path="trap.txt")["count"] == 1


@pytest.mark.parametrize("tree", ["ripgrep", "RE2"], indirect=True)
def test_an_unsupported_pattern_is_an_error_for_the_model(tree):
    error = tree("search_files", pattern="(?<=find_)me")["error"]
    assert error
    assert "b'" not in error


def test_a_pattern_for_the_end_of_a_line_matches_windows_ends(tree):
    (tree.cwd / "dos.txt").write_bytes(b"a needle\r\nneedles\r\n")
    assert tree("search_files", pattern="needle$")["matches"] == ["dos.txt:1:a needle"]


def test_line_numbers_are_those_of_read_file(tree):
    (tree.cwd / "form.txt").write_bytes("a\x0cb\u2028c\nfeed\n".encode())
    assert tree("search_files", pattern="feed")["matches"] == ["form.txt:2:feed"]


@pytest.mark.skipif(RG is None, reason="no ripgrep here")
def test_a_glob_does_not_include_hidden_and_ignored_files(bench):
    (bench.cwd / ".git").mkdir()
    for name in (".git/x.txt", "logs.txt", "kept.txt"):
        (bench.cwd / name).write_text("needle\n")
    (bench.cwd / ".gitignore").write_text("logs.txt\n")
    assert bench("search_files", pattern="*", mode="files")["matches"] == ["kept.txt"]
    found = bench("search_files", pattern="needle", glob="*.txt")
    assert found["matches"] == ["kept.txt:1:needle"]
    (bench.cwd / ".github").mkdir()
    (bench.cwd / ".github/ci.yml").write_text("needle\n")
    named = bench("search_files", pattern=".github/*.yml", mode="files")
    assert named["matches"] == [".github/ci.yml"]


@pytest.mark.skipif(RG is None, reason="no ripgrep here")
def test_a_pattern_with_a_line_end_is_refused_in_our_words(bench):
    (bench.cwd / "a").write_text("a\nb\n")
    error = bench("search_files", pattern="a\\nb")["error"]
    assert error == "`pattern` is compared with single lines and cannot contain a line end."
