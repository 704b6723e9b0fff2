""".env: any secret can be stored, and other lines are not changed."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.config.env_file import EnvFile
from hermes_core.errors import ConfigError


def test_a_missing_file_has_no_values(tmp_path):
    assert EnvFile(tmp_path / ".env").values() == {}


def test_other_lines_are_kept_as_they_are(tmp_path):
    path = tmp_path / ".env"
    path.write_text("# keys\n\nexport A = 'one' # note\nB=two # note\nbroken line\nA=three\n")
    file = EnvFile(path)
    assert file.values() == {"A": "three", "B": "two"}
    file.set("B", "new")
    assert path.read_text() == ("# keys\n\nexport A = 'one' # note\nB=new\nbroken line\nA=three\n")
    file.set("C", "c")
    assert path.read_text().endswith("A=three\nC=c\n")


def test_unset_removes_every_line_of_a_key(tmp_path):
    path = tmp_path / ".env"
    path.write_text("A=1\nB=2\nA=3")
    assert EnvFile(path).unset("A") is True
    assert path.read_text() == "B=2\n"
    assert EnvFile(path).unset("A") is False


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        EnvFile(tmp_path / ".env").values()


@pytest.mark.parametrize("value", ["a\0b", "a\udc80b"])
def test_a_value_that_is_not_text_is_refused_without_showing_it(tmp_path, value):
    with pytest.raises(ConfigError) as caught:
        EnvFile(tmp_path / ".env").set("A", value)
    assert value not in str(caught.value)


def test_a_shell_reads_the_same_value(tmp_path):
    path = tmp_path / ".env"
    secret = 'p$ss `word` #1 "quoted" {x}'
    EnvFile(path).set("A", secret)
    program = f'. {path}; printf %s "$A"'
    shell = subprocess.run(["sh", "-c", program], capture_output=True, check=True, text=True)
    assert shell.stdout == secret


@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_text_is_read_back_unchanged(tmp_path_factory, value):
    file = EnvFile(tmp_path_factory.mktemp("env") / ".env")
    file.set("BEFORE", "1")
    file.set("SECRET", value)
    file.set("AFTER", "2")
    assert file.values() == {"BEFORE": "1", "SECRET": value, "AFTER": "2"}
