"""What a task remembers: tables in memory, kept in RocksDB and in a changelog on the broker."""

from streams.engine.state.counts import CountsTable
from streams.engine.state.entries import EntriesTable
from streams.engine.state.journal import JournalTable
from streams.engine.state.store import Store
from streams.engine.state.table import Change, Table

__all__ = ["Change", "CountsTable", "EntriesTable", "JournalTable", "Store", "Table"]
