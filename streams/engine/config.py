"""What the engine needs to know, in one frozen object; it reads no file and no environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from settings.model import Settings
from streams.kafka.client.producer import TransactionalProducer
from streams.kafka.client.reader import committed_reader
from streams.kafka.security import client_arguments
from streams.kafka.topics import Topics


@dataclass(frozen=True, slots=True)
class Pace:
    """How batches are cut and how long they wait for others.

    chunk      the maximum number of records in one piece
    room       bytes of a topic that may be buffered before fetching pauses
    slack      how far one topic may be ahead of another, in milliseconds of the stream
    patience   seconds, of wall-clock time
    """

    chunk: int
    room: int
    slack: int
    patience: float


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How tasks of one application run. Times are in seconds, sizes in bytes.

    app                  the consumer group
    prefix               the beginning of the names of topics and of transactional ids
    client               connection arguments of every aiokafka client (`bootstrap_servers`, …)
    state                the folder of the RocksDB folders
    deadletters          the topic for records that an agent without one of its own cannot use
    max_records          the most records in one transaction
    chunk_records        the most that are processed before the event loop gets a turn
    ahead_records        with fewer at hand, a task waits for its commit before it processes more
    backlog_bytes        the most that a task has fetched and not processed
    batch_bytes          the most in one record batch that is sent
    fetch_bytes          the most that is fetched of a partition at a time
    changelog_bytes      the most that one row of a table may take; changelogs are created for it
    request_timeout      for one request to a broker
    transaction_timeout  after which the broker aborts a transaction that was left open
    commit_timeout       for one commit; then the session ends
    session_timeout      after which the group considers a silent worker dead
    heartbeat            between two heartbeats
    flush_timeout        for the commit before a task closes or a rebalance
    leave_timeout        for leaving the group
    retries              attempts after a bug before the task stops
    backoff              the first pause before a task opens again; it doubles with each failure …
    max_backoff          … up to this
    tick                 between two calls of a processor's `tick` while there is nothing to read
    linger               how long work that is not urgent waits for urgent work, to share its
                         transaction
    stuck_after          a worker is not ready if a commit or a rebalance takes longer
    silent_after         a worker is not ready if no broker has answered for longer
    hung_after           a worker hangs if a loop has not turned for longer
    topics_every         how often a task asks whether its topics are still the same
    rewrite_every        a task that commits nothing for so long commits its positions again: Kafka
                         compacts only what is followed by newer records
    slack                stream time by which one input may be ahead of another during a catch-up
    patience             how long a task that catches up waits for an input (`tasks/inbox.py`)
    """

    app: str
    prefix: str
    client: Mapping[str, Any]
    state: Path
    deadletters: str
    max_records: int = 10_000
    chunk_records: int = 1_000
    ahead_records: int = 250
    backlog_bytes: int = 8 << 20
    batch_bytes: int = 512 << 10
    fetch_bytes: int = 2 << 20
    changelog_bytes: int = 16 << 20
    request_timeout: float = 30.0
    transaction_timeout: float = 60.0
    commit_timeout: float = 45.0
    session_timeout: float = 10.0
    heartbeat: float = 0.5
    flush_timeout: float = 5.0
    leave_timeout: float = 5.0
    retries: int = 3
    backoff: float = 0.5
    max_backoff: float = 10.0
    tick: float = 0.1
    linger: float = 0.05
    stuck_after: float = 15.0
    silent_after: float = 6.0
    hung_after: float = 60.0
    topics_every: float = 30.0
    rewrite_every: float = 86_400.0
    slack: float = 1.0
    patience: float = 3.0

    @property
    def address(self) -> str:
        """Return the broker's first address, for messages."""
        servers = self.client["bootstrap_servers"]
        addresses: list[str] = servers.split(",") if isinstance(servers, str) else list(servers)
        return addresses[0]

    def transactional_id(self, agent: str, partition: int) -> str:
        """Return the transactional id of a task: a new owner of the id fences the old one."""
        return f"{self.prefix}{agent}.{partition}"

    def changelog(self, agent: str) -> str:
        """Return the topic for state that only the task itself reads."""
        return f"{self.prefix}{agent}.changelog"

    def shared_changelog(self, agent: str) -> str:
        """Return the topic for state that other partitions and the pages read too."""
        return f"{self.prefix}{agent}.shared"

    def secret_changelog(self, agent: str) -> str:
        """Return the topic for state that the agent's other partitions read, and nobody else."""
        return f"{self.prefix}{agent}.models"

    def reader(self, name: str, wait_ms: int = 20) -> Any:
        """Return a consumer outside any group that reads committed records."""
        return committed_reader(
            self.client,
            name,
            fetch_bytes=self.fetch_bytes,
            request_timeout=self.request_timeout,
            wait_ms=wait_ms,
        )

    def producer(self, transactional_id: str) -> TransactionalProducer:
        """Return the one producer that may write under a transactional id."""
        return TransactionalProducer(
            self.client,
            transactional_id,
            request_timeout=self.request_timeout,
            transaction_timeout=self.transaction_timeout,
            batch_bytes=self.batch_bytes,
        )

    def pace(self, inputs: int) -> Pace:
        """Return the buffering limits of a task with this many inputs."""
        room = self.backlog_bytes // inputs
        return Pace(self.chunk_records, room, int(1000 * self.slack), self.patience)

    def state_folder(self, agent: str, partition: int) -> Path:
        """Return where a task's RocksDB folders are."""
        return self.state / agent / str(partition)


def engine_config(settings: Settings) -> EngineConfig:
    """Return the engine's configuration from the settings."""
    topics, worker = Topics.of(settings), settings.worker
    client = client_arguments(settings.broker)
    client.pop("request_timeout_ms")
    session = worker.session_timeout.total_seconds()
    return EngineConfig(
        settings.name,
        topics.prefix,
        client,
        worker.state,
        topics.deadletter,
        max_records=worker.batch_size,
        request_timeout=settings.broker.request_timeout.total_seconds(),
        transaction_timeout=worker.transaction_timeout.total_seconds(),
        session_timeout=session,
        heartbeat=min(0.5, session / 3),
    )
