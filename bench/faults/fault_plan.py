"""What goes wrong and when, drawn from a seed: the same seed gives the same schedule."""

import random
from dataclasses import dataclass, replace
from enum import Enum

from bench.log_ins import USERS


class Fault(Enum):
    """What is done to a worker or to a broker."""

    KILL_WORKER = "worker killed"
    PAUSE_WORKER = "worker paused past its session, then resumed"
    COME_AND_GO = "third worker came and left cleanly"
    KILL_BROKER = "broker killed"
    BOUNCE_BROKER = "broker stopped cleanly and started"
    DAMAGE_DISK = "worker killed or stopped, its state damaged, started"
    ROLLING_RESTART = "all workers restarted cleanly, one after the other"


@dataclass(frozen=True, slots=True)
class Event:
    """One fault: its target, and how long to wait afterwards, in seconds."""

    fault: Fault
    target: int
    rest: float
    seed: int = 0
    """Decides on the details, where there are any."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many faults of each kind, over how many records."""

    records: int
    kills: int
    pauses: int = 1
    visits: int = 2
    broker_kills: int = 1
    bounces: int = 1
    workers: int = 2
    brokers: int = 3
    partitions: int = 4
    session_timeout: float = 6.0
    rest: tuple[float, float] = (11.5, 14.0)
    request_timeout: float = 10.0
    damages: int = 0
    """How often a worker's state is damaged before it restarts."""
    network: bool = False
    """Whether frames between workers and brokers are also held, lost and cut off."""

    secure: bool = False
    """Whether the brokers encrypt, ask for log-ins and control access."""

    @property
    def users(self) -> tuple[str, ...]:
        """Who may log in; if there are none, no log-in is needed."""
        return USERS if self.secure else ()

    def with_security(self) -> "Plan":
        """Return the same plan on secure brokers."""
        return replace(self, secure=True)

    def with_network(self, request_timeout: float) -> "Plan":
        """Return the same plan with network faults; frames are held beyond the time-out."""
        return replace(self, network=True, request_timeout=request_timeout)

    def with_disk(self) -> "Plan":
        """Return the same plan with one damaged disk per killed worker, and at least four."""
        return replace(self, damages=max(self.kills, 4))


PATIENT, HASTY = 30.0, 3.0
"""Request time-outs, in seconds, for runs with network faults: the default, and one so short that
many frames can be held beyond it in a short run."""

FULL = Plan(records=300_000, kills=10)
"""Each fault waits for the recovery from the previous one, so that each can be timed."""

SHORT = Plan(records=30_000, kills=3, visits=1, bounces=0, rest=(1.0, 4.0))
"""Each fault hits during the recovery from the previous one."""

PIPELINE = Plan(
    records=50_000, kills=6, pauses=1, visits=1, broker_kills=3, bounces=1, rest=(2.0, 8.0)
)
"""For patients through the whole pipeline."""

PIPELINE_SHORT = Plan(
    records=2_500, kills=2, pauses=0, visits=0, broker_kills=1, bounces=0, partitions=2,
    rest=(0.5, 2.0),
)  # fmt: skip


def schedule(plan: Plan, seed: int) -> list[Event]:
    """Return the faults in a random order.

    >>> [event.fault.name for event in schedule(Plan(1, kills=1, visits=0, pauses=0), seed=4)]
    ['BOUNCE_BROKER', 'KILL_BROKER', 'KILL_WORKER']
    """
    draw = random.Random(seed)  # noqa: S311  # a schedule, not a secret
    counts = {
        Fault.KILL_WORKER: plan.kills,
        Fault.PAUSE_WORKER: plan.pauses,
        Fault.COME_AND_GO: plan.visits,
        Fault.KILL_BROKER: plan.broker_kills,
        Fault.BOUNCE_BROKER: plan.bounces,
        Fault.DAMAGE_DISK: plan.damages,
    }
    faults = [fault for fault, count in counts.items() for _ in range(count)]
    draw.shuffle(faults)
    return [
        Event(fault, _target(fault, plan, draw), draw.uniform(*plan.rest), 1000 * seed + number)
        for number, fault in enumerate(faults)
    ]


def seconds(event: Event, plan: Plan) -> float:
    """Return roughly how long a fault and the pause after it take."""
    busy = {
        Fault.KILL_WORKER: 0.5,
        Fault.PAUSE_WORKER: plan.session_timeout + 4.0,
        Fault.COME_AND_GO: 8.0,
        Fault.KILL_BROKER: 9.0,
        Fault.BOUNCE_BROKER: 8.0,
        Fault.DAMAGE_DISK: 1.5,
    }
    return busy[event.fault] + event.rest


def _target(fault: Fault, plan: Plan, draw: random.Random) -> int:
    hits_broker = fault in (Fault.KILL_BROKER, Fault.BOUNCE_BROKER)
    return draw.randrange(plan.brokers if hits_broker else plan.workers)
