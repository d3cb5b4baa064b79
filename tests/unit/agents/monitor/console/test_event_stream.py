"""Frames are made once for all pages, only while pages are open, and never queue up."""

import asyncio
import contextlib

import pytest

from agents.monitor.console.event_stream import EventStream, event


class Maker:
    """Makes numbered frames; counts how often it was left alone."""

    def __init__(self):
        self.rests = 0
        self.fail = False
        self.stream = EventStream(self.make, idle=self.rest, every=0.05)

    async def make(self):
        if self.fail:
            raise RuntimeError("broken")
        return event("snapshot", {"n": self.stream.frame_number})

    async def rest(self):
        self.rests += 1


async def read(stream, count, missing=0):
    frames_read = []
    async with contextlib.aclosing(stream.frames()) as frames:
        async for frame in frames:
            frames_read.append(frame)
            if len(frames_read) == count:
                break
            count_before = stream.frame_number
            await asyncio.sleep(0)
            await until(
                lambda count_before=count_before: stream.frame_number >= count_before + missing
            )
    return frames_read


async def until(holds):
    async with asyncio.timeout(120):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)


async def test_a_hundred_pages_get_the_same_bytes_and_each_frame_is_made_once():
    maker = Maker()
    readings = await asyncio.gather(*[read(maker.stream, 5) for _ in range(100)])
    assert all(frames == readings[0] for frames in readings)
    assert all(a is b for a, b in zip(readings[0], readings[99], strict=True)), "not even copied"
    assert maker.stream.frame_number <= 6


async def test_a_slow_page_misses_frames_and_holds_up_nobody():
    maker = Maker()
    fast, slow = await asyncio.gather(read(maker.stream, 20), read(maker.stream, 4, missing=3))
    numbers = [int(frame.split(b":")[-1].strip(b"}\n")) for frame in fast]
    assert numbers == list(range(20))
    missed = [int(frame.split(b":")[-1].strip(b"}\n")) for frame in slow]
    assert missed[-1] - missed[0] > 6
    assert missed == sorted(missed)


async def test_nothing_is_made_while_nobody_looks():
    maker = Maker()
    await read(maker.stream, 2)
    await until(lambda: maker.rests == 1)
    count = maker.stream.frame_number
    await asyncio.sleep(0.1)
    assert maker.stream.frame_number == count
    assert maker.stream.pages == 0
    # A page that is opened later does not begin with the frame of long ago.
    first, *_ = await read(maker.stream, 1)
    assert first == event("snapshot", {"n": count})


async def test_a_page_that_comes_later_begins_with_the_present_frame():
    maker = Maker()
    maker.stream._every = 10.0
    first = asyncio.create_task(read(maker.stream, 2))
    await until(lambda: maker.stream.frame_number == 1)
    assert await read(maker.stream, 1) == [event("snapshot", {"n": 0})]
    first.cancel()
    await asyncio.wait([first])
    await maker.stream.close()


async def test_closing_ends_every_stream():
    maker = Maker()
    pages = [asyncio.create_task(read(maker.stream, 10**6)) for _ in range(3)]
    await until(lambda: maker.stream.frame_number > 2)
    await maker.stream.close()
    async with asyncio.timeout(120):
        assert all(await asyncio.gather(*pages))
    assert await read(maker.stream, 1) == []


async def test_an_error_ends_the_streams_and_is_logged_and_the_next_page_starts_again(caplog):
    maker = Maker()
    page = asyncio.create_task(read(maker.stream, 10**6))
    await until(lambda: maker.stream.frame_number > 1)
    maker.fail = True
    async with asyncio.timeout(120):
        assert await page
    await until(lambda: "event stream failed" in caplog.text)
    maker.fail = False
    assert len(await read(maker.stream, 2)) == 2


@pytest.mark.parametrize("data", [{"a": [1, None]}, "line\nbreak"])
def test_an_event_is_one_line_of_json(data):
    assert event("hello", data).count(b"\n") == 3
