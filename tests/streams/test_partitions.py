"""Counts add up: the merged tables do not depend on the number of partitions."""

from engine_kit import until
from pipeline_kit import arrive, create_topics, label, patients, running, settings

from agents.totals import LABELLED

WITHOUT_LEARNING = ('learners.c.rules={benign={kind="constant",label="benign"},'
                    'malignant={kind="constant",label="malignant"}}')  # fmt: skip


def processors(app, agent):
    return [
        task.session._processor
        for (name, _), task in sorted(app.engine.tasks.items())
        if name == agent and task.session is not None
    ]


def knows_all(app, agent, partitions, n):
    """Tell whether each partition of a local learner knows of n labels, its own and the others'."""
    learners = processors(app, agent)
    return len(learners) == partitions and all(
        p is not None
        and p.learner.iup.labelled
        + (p.learner.iup.elsewhere.labelled if p.learner.iup.elsewhere else 0)
        == n
        for p in learners
    )


async def eventually(holds, seconds=60):
    await until(holds, seconds)


def counted(app, event):
    return sum(p.learner.ledger.counts[event] for p in processors(app, "ensemble") if p)


def merged(tables):
    """Return the sum of tables over the partitions, as a dictionary."""
    total = {}
    for table in tables:
        for cell, row in zip(*table.items(), strict=True):
            total[int(cell)] = total.get(int(cell), 0) + row
    return {cell: row.tolist() for cell, row in sorted(total.items())}


async def learned(config, partitions, rounds=4, size=60):
    """Run a labelled stream, all feedback awaited after each round; return the merged tables."""
    await create_topics(config)
    ids, features, truth = patients(rounds * size, seed=7)
    async with running(config) as app:
        for k in range(rounds):
            part = slice(k * size, (k + 1) * size)
            await arrive(config, ids[part], {f: v[part] for f, v in features.items()})
            # Labels only when all of the round are decided, so that all decide by the same counts.
            await eventually(lambda n=(k + 1) * size: counted(app, "diagnosed_complete") == n)
            await label(config, ids[part], truth[part])
            for name in config.learners:
                await eventually(
                    lambda name=name, n=(k + 1) * size: knows_all(
                        app, f"local.{name}", partitions, n
                    )
                )
        for task in app.engine.tasks.values():
            await task.session.flush()
        tables = {
            name: merged(p._counts for p in processors(app, f"local.{name}"))
            for name in config.learners
        }
        tables["labelled"] = {
            name: sum(p._totals.read(LABELLED) for p in processors(app, f"local.{name}"))
            for name in config.learners
        }  # fmt: skip
        assert counted(app, "settled") == rounds * size
    return tables


async def test_one_and_four_partitions_learn_the_same_tables(broker_address, prefix, tmp_path):
    tables = []
    for partitions in (1, 4):
        folder = tmp_path / str(partitions)
        folder.mkdir()
        config = settings(
            folder,
            broker_address,
            f"{prefix.strip('.')}p{partitions}",
            WITHOUT_LEARNING,
            f"topics.partitions={partitions}",
        )
        tables.append(await learned(config, partitions))
    assert tables[0] == tables[1]
