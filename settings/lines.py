"""The line of each key of a TOML text, which `tomllib` does not tell.

`tomllib` has parsed the text before, so it is known to be valid: the scanner only has to find where
keys, tables, lists and strings begin and end.

    >>> lines = lines_of('a = 1\\n[b]\\nc = [\\n  {d = 2},\\n]')
    >>> lines["a",], lines["b", "c"], lines["b", "c", 0, "d"]
    (1, 3, 4)
"""

import re
import tomllib
from collections.abc import Mapping

from settings.sections.base import KeyPath

_BLANK = re.compile(r"[ \t\r]*")
_FILLER = re.compile(r"(?:[\s,]|#[^\n]*)*")
_KEY_PART = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'  # a multi-line string may end in quotes of its own
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^\n,\]}#]*",
    re.DOTALL,
)


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every key, table and list element."""
    # tomllib reads \r\n as \n; a lone \r cannot occur in a valid text.
    return _Scanner(text.replace("\r\n", "\n")).scan()


def nearest_line(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a path, or of the nearest table or list around it that is in the text."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


class _Scanner:
    """Walks through the text once; `at` is the next character to look at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.tables: dict[
            KeyPath, int
        ] = {}  # arrays of tables, and the index of the last one opened
        self._counted, self._line = 0, 1

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip(_FILLER)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_FILLER)
        return self.lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None  # noqa: S101 - every pattern here matches the empty text
        self.at = match.end()
        return match[0]

    def _mark(self, path: KeyPath, start: int) -> None:
        """Remember where a path, and any table that it implies, is first mentioned."""
        self._line += self.text.count("\n", self._counted, start)
        self._counted = start
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], self._line)

    def _header(self) -> KeyPath:
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 1 + many
        path = self._within_tables(self._key(), many)
        self.at += 1 + many
        self._mark(path, start)
        return path

    def _within_tables(self, keys: list[str], many: bool) -> KeyPath:
        """Turn a header's keys into a path: an array of tables means its last table."""
        path: KeyPath = ()
        for i, key in enumerate(keys):
            path = (*path, key)
            if many and i == len(keys) - 1:
                self.tables[path] = self.tables.get(path, -1) + 1
            if path in self.tables:
                path = (*path, self.tables[path])
        return path

    def _key(self) -> list[str]:
        """Read a dotted key and the blanks around it."""
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            part = _KEY_PART.match(self.text, self.at)
            assert part is not None  # noqa: S101 - tomllib has accepted the text
            self.at = part.end()
            parts.append(next(iter(tomllib.loads(f"{part[0]} = 0"))))
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = (*table, *self._key())
        self._mark(path, start)
        self.at += 1  # the equals sign
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip(_BLANK)
        opening = self.text[self.at]
        if opening == "[":
            self._list(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            self._skip(_SCALAR)

    def _list(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        self._skip(_FILLER)
        while self.text[self.at] != "]":
            self._mark((*path, index), self.at)
            self._value((*path, index))
            index += 1
            self._skip(_FILLER)
        self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        self._skip(_FILLER)
        while self.text[self.at] != "}":
            self._pair(path)
            self._skip(_FILLER)
        self.at += 1
