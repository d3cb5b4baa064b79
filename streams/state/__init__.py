"""What a task remembers: tables in memory, kept in RocksDB and in a changelog on the broker."""

from streams.state.counts import CountsTable
from streams.state.entries import EntriesTable
from streams.state.journal import JournalTable
from streams.state.store import Store
from streams.state.table import Change, Table

__all__ = ["Change", "CountsTable", "EntriesTable", "JournalTable", "Store", "Table"]
