"""The log-ins of a benchmark on secure brokers, each with the rights of its roles and no others."""

from collections.abc import Iterator
from dataclasses import replace

from settings.model import Settings
from settings.sections.broker import BrokerSettings
from streams.broker import USER, EmbeddedBroker
from streams.kafka.acls import add, compare
from streams.kafka.connection import admin_client
from streams.kafka.rights import Role, roles

WORKER, PUBLISHER, OPERATOR = "worker", "publisher", "operator"
USERS = (USER, WORKER, PUBLISHER, OPERATOR)
"""Who may log in; the first is the administrator."""


def broker_of(cluster: EmbeddedBroker, user: str) -> BrokerSettings:
    """Return how a user connects; on a cluster without security, how everybody does."""
    plan = cluster.plan
    return cluster.settings(user if plan and plan.secure else None)


def as_user(settings: Settings, cluster: EmbeddedBroker, user: str) -> Settings:
    """Return the same ensemble with the log-in of a user."""
    return settings.model_copy(update={"broker": broker_of(cluster, user)})


async def grant(administrator: Settings) -> None:
    """Give the users what their roles in this ensemble need."""
    async with admin_client(administrator.broker) as admin:
        await add(admin, (await compare(admin, list(_roles(administrator)))).missing)


def _roles(settings: Settings) -> Iterator[Role]:
    for role in roles(settings):
        if role.name == "ensemble" or role.name.startswith("local-"):
            yield replace(role, user=WORKER)
        elif role.name in ("producer", "labels"):
            yield replace(role, user=PUBLISHER)
        elif role.name == "operator":
            yield replace(role, user=OPERATOR)
