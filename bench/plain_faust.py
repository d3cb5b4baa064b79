"""Faust as its documentation sets it up, for the peers that are plain Faust applications."""

import faust

ROCKSDB, MEMORY = "rocksdb://?driver=rocksdict", "memory://"


def create_app(address: str, name: str, folder: str, store: str = ROCKSDB) -> faust.App:
    """Return an application of one partition that keeps its tables in `store`."""
    return faust.App(
        name,
        broker=f"kafka://{address}",
        store=store,
        datadir=folder,
        topic_partitions=1,
        topic_replication_factor=1,
        consumer_auto_offset_reset="earliest",
        web_enabled=False,
        topic_disable_leader=True,
    )


def run(app: faust.App) -> None:
    """Run until told to stop."""
    faust.Worker(app, loglevel="warning", quiet=True).execute_from_commandline()
