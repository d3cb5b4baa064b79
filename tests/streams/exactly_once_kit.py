"""One agent that counts ids, input for it, and whether its outputs and its state are exact."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from streams.engine import AgentSpec, EngineConfig
from streams.engine.state import CountsTable, EntriesTable, Store
from streams.engine.tasks.group import TaskGroup
from tests.streams.engine_kit import (
    CELLS,
    committed,
    config,
    create_topics,
    ids,
    produce,
    spec,
    until,
)


class Job:
    """An agent with its topics and its input, on a broker that `through` may lead to by a proxy."""

    def __init__(
        self, address: str, prefix: str, folder: Path, records: int, *, through: str, **changes: Any
    ) -> None:
        self._address, self._prefix, self.records = address, prefix, records
        self.config: EngineConfig = config(through, prefix, folder, **changes)
        self.agent: AgentSpec = spec(prefix)

    async def prepare(self) -> None:
        """Create the topics and fill the input."""
        await create_topics(self._address, self.config, [self.agent], self._prefix + "out")
        # Ids repeat, so that state read in a wrong version would show in the outputs.
        repeated = ids(n % 300 for n in range(self.records))
        await produce(self._address, self._prefix + "in", repeated)

    async def visible(self) -> list[Any]:
        """Return the committed outputs."""
        outputs = await committed(self._address, self._prefix + "out")
        return [orjson.loads(record.value) for record in outputs]

    async def finish(self, group: TaskGroup) -> None:
        """Wait until all input is read and committed."""
        position = self._prefix + "in"
        await until(lambda: group.statuses()[0].positions.get(position) == self.records)

    async def check_exact(self) -> None:
        """Compare outputs and stored state with a recomputation from the input."""
        counts: Counter[int] = Counter()
        expected = []
        for record in await committed(self._address, self._prefix + "in"):
            number = orjson.loads(record.value)["id"]
            expected.append({"id": number, "before": counts[number]})
            counts[number] += 1
        outputs = await self.visible()
        assert len(outputs) == len(expected)
        assert outputs == expected
        self._check_state(counts)

    def _check_state(self, counted: Counter[int]) -> None:
        counts, entries = CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")
        folder = self.config.state_folder("count", 0) / "0"
        with Store(folder, ["counts", "seen"]) as store:
            counts.load(store)
            entries.load(store)
            assert store.positions == {self._prefix + "in": self.records}
            assert dict(entries.items()) == {b"%d" % n: b"%d" % c for n, c in counted.items()}
        cells: Counter[int] = Counter()
        for number, count in counted.items():
            cells[number % CELLS] += count
        assert dict(zip(*[a.ravel().tolist() for a in counts.items()], strict=True)) == cells
