"""The scanner finds the paths that tomllib finds, and their lines."""

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from settings.lines import lines_of, nearest_line

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
keys = st.one_of(st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True), texts.filter(bool))
scalars = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), texts)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)
documents = st.dictionaries(keys, trees, max_size=4)


def paths_in(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from paths_in(below, (*path, key))
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from paths_in(below, (*path, i))


@given(documents)
def test_finds_every_path_of_any_document(document):
    text = tomlkit.dumps(document)
    assert set(lines_of(text)) == set(paths_in(tomllib.loads(text)))


@given(st.lists(st.tuples(keys, scalars), min_size=1, max_size=8, unique_by=lambda kv: kv[0]))
def test_lines_are_those_of_the_keys(pairs):
    lines = [
        f"# [not.a.table] = {{}}\n\n{tomlkit.key(key).as_string()} = {tomlkit.item(v).as_string()}"
        for key, v in pairs
    ]
    text = "\n".join(lines)
    numbers = lines_of(text)
    for key, _ in pairs:
        # The item follows a comment and a blank line; its own text may span several.
        line = text.split("\n")[numbers[key,] - 1]
        assert line.startswith(f"{tomlkit.key(key).as_string()} = ")


TRICKY = '''\
a = 1 # = [b]
b.c."d.e" = "x = { # ]"
'f g' = """
[not]
a "quoted" one"""" # ends with a quote of its own
[h]
i = [ # comment ]
  1,

  {j = 2, k.l = [3,
    4]}, # {
]
[[m]]
n = 1
[[m]]
n = \'\'\'[[m]]
n = 2\'\'\'
[m.o]
p = 2024-01-01T00:00:00Z
[[m.q]]
[h . "r s"]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1),
        (("b",), 2),
        (("b", "c", "d.e"), 2),
        (("f g",), 3),
        (("h",), 6),
        (("h", "i"), 7),
        (("h", "i", 0), 8),
        (("h", "i", 1, "j"), 10),
        (("h", "i", 1, "k", "l", 0), 10),
        (("h", "i", 1, "k", "l", 1), 11),
        (("m", 0), 13),
        (("m", 0, "n"), 14),
        (("m", 1), 15),
        (("m", 1, "n"), 16),
        (("m", 1, "o", "p"), 19),
        (("m", 1, "q", 0), 20),
        (("h", "r s"), 21),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_tricky_layout(path, line, newline):
    text = TRICKY.replace("\n", newline)
    tomllib.loads(text)
    assert lines_of(text)[path] == line


def test_nearest_line_falls_back_to_what_is_around():
    lines = lines_of("[a]\nb = [\n  {c = 1},\n]\n")
    assert nearest_line(lines, ("a", "b", 0, "missing")) == 3
    assert nearest_line(lines, ("a", "x", "y")) == 1
    assert nearest_line(lines, ("z",)) is None
