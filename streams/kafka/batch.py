"""A run of records of one partition, as columns: the decoders and numpy work on lists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one topic partition in their order; the i-th of each list is the i-th record.

    `base` is the offset that was asked for and `next` the one to ask for afterwards: offsets
    between them that are in no list belong to aborted, compacted or control records. `end` is the
    end of what was committed in the partition when the batch was fetched. Few records have
    headers, so `headers` maps only their indexes.
    """

    topic: str
    partition: int
    base: int
    next: int
    end: int
    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: Mapping[int, Headers] = field(default_factory=dict)
    nbytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def join(self, other: "Batch") -> "Batch":
        """Return this batch and the one that follows it as one."""
        count = len(self)
        return Batch(
            self.topic,
            self.partition,
            self.base,
            other.next,
            other.end,
            self.offsets + other.offsets,
            self.timestamps + other.timestamps,
            self.keys + other.keys,
            self.values + other.values,
            {**self.headers, **{count + i: h for i, h in other.headers.items()}},
            self.nbytes + other.nbytes,
        )

    def cut(self, size: int) -> tuple["Batch", "Batch | None"]:
        """Return the first `size` records and the rest, which join without a gap."""
        if size >= len(self):
            return self, None
        after = self.offsets[size]
        return self._part(self.base, after, 0, size), self._part(after, self.next, size, len(self))

    def split(self, size: int) -> Iterator["Batch"]:
        """Return the batch in pieces of at most `size` records that join without a gap."""
        if len(self) <= size:
            yield self
            return
        base = self.base
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            after = self.next if stop == len(self) else self.offsets[stop]
            yield self._part(base, after, start, stop)
            base = after

    def _part(self, base: int, after: int, start: int, stop: int) -> "Batch":
        return replace(
            self,
            base=base,
            next=after,
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            headers={i - start: h for i, h in self.headers.items() if start <= i < stop},
            # Shares that add up to the whole, however it is cut.
            nbytes=self.nbytes * stop // len(self) - self.nbytes * start // len(self),
        )
