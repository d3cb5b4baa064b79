"""What the rules of a local learner have learned, as rows of its state.

A model of few patients tells much about them: after the first one a mean is that patient's value.
So the table is secret (`streams.engine.state.table`), and if the learner has keys, a row is
encrypted: the length of the key's id, the id, then nonce and ciphertext, bound to the learner and
the rule. A row in the clear begins with a byte that no such length has, so both can be told apart.

Earlier versions kept models in the table `models`, which every worker may read. They are moved when
a task opens, and so are rows in the clear, or under an earlier key, once there is a new one.
"""

import logging
from collections.abc import Iterable, Mapping

from agents.sealing import KeyMissingError, KeyRing, WrongKeyError, learner_rings
from agents.state_encoding import pack_state, unpack_state
from learners.arrays.types import State
from schemas.sealed import Sealed
from settings.model import Settings
from streams.engine.errors import FinalError
from streams.engine.state.entries import EntriesTable
from streams.engine.state.table import Table

MODELS = "learned"
EARLIER = "models"
_CLEAR = 0x80
"""MessagePack writes named arrays with a first byte from here on."""
_log = logging.getLogger(__name__)


def model_tables() -> list[Table]:
    """Return the tables of a learner with rules that learn."""
    return [EntriesTable(MODELS, secret=True), EntriesTable(EARLIER, shared=True)]


class ModelFormat:
    """How a learner's models are written and read; encrypted if the learner has keys."""

    def __init__(self, settings: Settings, learner: str) -> None:
        rings = learner_rings(settings, learner)
        self._ring = rings.models if rings else KeyRing("", {})
        self._learner = learner

    def write(self, name: bytes, clear: bytes) -> bytes:
        """Return a model as it is kept."""
        if not self._ring:
            return clear
        key, content = self._ring.seal(name.decode(), clear)
        return bytes([len(key)]) + key.encode() + content

    def current(self, stored: bytes) -> bool:
        """Tell whether a row is as `write` would write it now."""
        return self._ring.writes == ("" if _is_clear(stored) else _sealed(stored).key)

    def lacks_key(self, stored: bytes) -> bool:
        """Tell whether a row is under a key that this learner does not have."""
        return not _is_clear(stored) and _sealed(stored).key not in self._ring

    def read(self, name: bytes, stored: bytes) -> bytes:
        """Return a model as it was; raise FinalError if its key is not there."""
        if _is_clear(stored):
            return stored
        sealed = _sealed(stored)
        try:
            return self._ring.open(name.decode(), sealed)
        except KeyMissingError:
            raise FinalError(
                f"learner {self._learner}: its models are encrypted with the key {sealed.key!r};"
                f" add it to privacy.keys.{self._learner}, after the key that encrypts"
            ) from None
        except WrongKeyError:
            raise FinalError(
                f"learner {self._learner}: its models cannot be decrypted with the key"
                f" {sealed.key!r}: another key of that id encrypted them, or they were altered"
            ) from None


def _is_clear(stored: bytes) -> bool:
    return not stored or stored[0] >= _CLEAR


def _sealed(stored: bytes) -> Sealed:
    end = 1 + stored[0]
    return Sealed(stored[1:end].decode("ascii", "replace"), stored[end:])


class Models:
    """The models of one partition; those of earlier versions are moved here."""

    def __init__(self, tables: Mapping[str, Table], settings: Settings, learner: str) -> None:
        table, earlier = tables[MODELS], tables[EARLIER]
        assert isinstance(table, EntriesTable) and isinstance(earlier, EntriesTable)  # noqa: S101, PT018
        self._table = table
        self._format = ModelFormat(settings, learner)
        self._learner = learner
        self._warned = False
        for name in list(earlier.keys()):
            if name not in table:
                table.put(name, self._format.write(name, earlier.get(name) or b""))
            earlier.delete(name)
        for name in list(table.keys()):
            stored = table.get(name) or b""
            if not self._format.current(stored):
                table.put(name, self._format.write(name, self._format.read(name, stored)))

    def stored(self, name: bytes) -> bytes | None:
        """Return a model as it is kept, to tell whether it has changed."""
        return self._table.get(name)

    def get(self, name: bytes) -> State | None:
        """Return a model, None before anything was learned."""
        stored = self._table.get(name)
        return None if stored is None else unpack_state(self._format.read(name, stored))

    def put(self, name: bytes, state: State) -> None:
        """Keep a model."""
        self._table.put(name, self._format.write(name, pack_state(state)))

    def pooled(self, name: bytes, others: Iterable[Mapping[bytes, bytes]]) -> list[State]:
        """Return this model and those of the other partitions.

        While keys are being changed, others may write with one that this worker does not have yet.
        """
        elsewhere = [rows[name] for rows in others if name in rows]
        readable = [stored for stored in elsewhere if not self._format.lacks_key(stored)]
        if len(readable) < len(elsewhere) and not self._warned:
            self._warned = True
            _log.warning(
                "learner %s: models of other partitions are encrypted with a key that is not in"
                " privacy.keys.%s here; they are not used until it is",
                self._learner, self._learner,
            )  # fmt: skip
        states = [unpack_state(self._format.read(name, stored)) for stored in readable]
        own = self.get(name)
        return states if own is None else [own, *states]
