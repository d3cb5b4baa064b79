"""Features under keys on a real broker: switched on in a running ensemble, rotated, audited.

What was published under keys is readable nowhere: not in a raw log segment, not in a state folder.
"""

import base64

from pipeline_kit import (
    arrive,
    await_count,
    await_letters,
    await_state,
    create_topics,
    label,
    learned,
    patients,
    running,
    settings,
)
from test_planted_values import Search, forms

from agents.clients.client import Publisher
from audit import audit
from schemas.deadletters import from_message
from settings.loading import load_settings
from streams.broker.reaper import temporary_broker
from streams.kafka.topics import Topics

VALUES = {"old": 0.4473829110283, "new": 0.6190283746551}
KEYS = {"old": bytes(range(32)), "new": bytes(range(32, 64))}


def under(folder, *names):
    """Return the settings with these keys for every learner, the first of which encrypts."""
    for name in names:
        (folder / name).write_text(base64.b64encode(KEYS[name]).decode())
    listed = ", ".join(f'{{id="{name}", file="{folder / name}"}}' for name in names)
    table = ", ".join(f"{learner}=[{listed}]" for learner in "abc")
    return load_settings(folder / "ensemble.toml", [f"privacy.keys={{{table}}}"])


async def publish(config, name):
    async with Publisher(config) as publisher:
        await publisher.publish({"x": 0.5, "y": 0.5, "z": VALUES[name]}, id=name)


async def test_features_under_keys_are_readable_nowhere(prefix, tmp_path):
    with temporary_broker() as broker:
        clear = settings(tmp_path, broker.address, prefix.strip("."))
        await create_topics(clear)
        search = Search(broker.data, clear.topics.prefix, tmp_path / "state")
        topics = Topics.of(clear)
        ids, features, truth = patients(10)
        async with running(clear):
            await arrive(clear, ids, features)
            await await_count(clear, topics.diagnoses, 10)
        async with running(config := under(tmp_path, "old")):
            await publish(config, "old")
            await await_count(config, topics.diagnoses, 11)
        async with running(config := under(tmp_path, "new", "old")):
            await publish(config, "new")
            await await_count(config, topics.diagnoses, 12)
            for value in VALUES.values():
                assert search.segments(forms(value)) == set()
                assert search.folders(forms(value)) == set()
            await label(config, [*ids, *VALUES], [*truth, "malignant", "benign"])
            await await_state(config, lambda state: learned(state, 12))
            for value in VALUES.values():
                assert search.segments(forms(value)) == set(), "models are encrypted as well"
                assert search.folders(forms(value)) == set()
            assert (await audit(config)).findings.list() == []
        async with running(config := under(tmp_path, "new")):
            await publish(under(tmp_path, "old"), "old")
            letters = await await_letters(config, 3)
        letters_read = {
            from_message(record.headers, record.key, record.value) for record in letters
        }
        assert {letter.reason for letter in letters_read} == {"undecryptable"}
        assert search.segments(forms(VALUES["old"])) == set(), "dead letters are as they came"
        assert not any(repr(VALUES["old"]) in letter.detail for letter in letters_read)
