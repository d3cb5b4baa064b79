"""The first contact with a broker: wait if that helps, else say in one sentence what is wrong.

aiokafka tries all addresses, logs each failure and raises one error without the reason. So the
first connection is made here, by hand; after that, the client's own retries are good enough.
"""

import asyncio
import logging
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient

from settings.errors import BrokerError
from settings.sections.broker import BrokerSettings
from streams.kafka.client import log_ins, record_batches
from streams.kafka.client.admin import PatientAdmin
from streams.kafka.client.requests import try_connection
from streams.kafka.security import client_arguments, located

# All our clients are created through this module.
record_batches.install()
log_ins.install()

_PAUSE = 0.25
_ATTEMPT = 5.0


class BrokerAwayError(BrokerError):
    """The broker at `address` cannot be reached, or accepts the connection but does not answer."""

    def __init__(self, address: str, message: str) -> None:
        super().__init__(message)
        self.address = address


class BrokerSlowError(BrokerError):
    """The broker answers, but not everything in the time that there is."""


class NotAllowedError(BrokerError):
    """The broker's access rules do not let this user do something."""


@dataclass(frozen=True)
class Refusal:
    """Why a connection failed, and whether a retry may succeed."""

    reason: str
    final: bool = False


async def await_broker(broker: BrokerSettings, patience: float | None = None) -> None:
    """Return as soon as one of the brokers answers us, or raise BrokerError.

    Errors that waiting cannot cure, such as a wrong password, are raised at once; all others
    after `patience` seconds (`broker.patience` if None).
    """
    patience = broker.patience.total_seconds() if patience is None else patience
    arguments = client_arguments(broker)
    addresses = arguments.pop("bootstrap_servers")
    deadline = time.monotonic() + patience
    while True:
        refusals = [(address, await _try(address, arguments, deadline)) for address in addresses]
        if any(refusal is None for _, refusal in refusals):
            return
        for address, refusal in refusals:
            if refusal is not None and refusal.final:
                raise BrokerError(f"cannot use the broker at {address}: {refusal.reason}")
        if time.monotonic() + _PAUSE > deadline:
            address, refusal = refusals[0]
            reason = refusal.reason if refusal else ""
            raise BrokerAwayError(
                address, f"cannot connect to {address} within {patience:g} s: {reason}"
            )
        await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def admin_client(
    broker: BrokerSettings, patience: float | None = None
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a connected admin client; its errors become BrokerErrors."""
    quiet_client()
    broker = located(broker)
    await await_broker(broker, patience)
    admin = PatientAdmin(broker.patience.total_seconds(), client_arguments(broker))
    try:
        with explaining(broker):
            await admin.start()
            yield admin
    finally:
        await admin.close()


@contextmanager
def explaining(broker: BrokerSettings) -> Iterator[None]:
    """Turn errors of the client into BrokerErrors."""
    try:
        yield
    except (kafka.KafkaError, TimeoutError) as error:
        raise explained(error, broker) from error


def explained(error: BaseException, broker: BrokerSettings) -> BrokerError:
    """Return an error of the client as one sentence."""
    where = f"the broker at {broker.addresses[0]}" if broker.addresses else "the embedded broker"
    if isinstance(error, _NOT_ALLOWED):
        user = broker.security.username or "this client"
        return NotAllowedError(
            f"{where} does not let {user} do this ({type(error).__name__}); see hb acls"
        )
    if isinstance(error, kafka.UnknownTopicOrPartitionError):
        return BrokerError(f"a topic is missing on {where}; create it with: hb topics create")
    message = f"{where} cannot be used: {_refusal(error).reason}"
    if isinstance(error, _AWAY):
        return BrokerAwayError(broker.addresses[0] if broker.addresses else where, message)
    return BrokerError(message)


def quiet_client(level: int = logging.CRITICAL) -> None:
    """Suppress aiokafka's log lines, unless a level was chosen for them.

    Its debug lines are expensive even when not shown, and we report its errors better.
    """
    logger = logging.getLogger("aiokafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(level)


_AWAY = (
    TimeoutError,
    kafka.KafkaConnectionError,
    kafka.KafkaTimeoutError,
    kafka.NodeNotReadyError,
    kafka.RequestTimedOutError,
)
_NOT_ALLOWED = (
    kafka.TopicAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.TransactionalIdAuthorizationFailed,
)


async def _try(address: str, arguments: dict[str, Any], deadline: float) -> Refusal | None:
    host, _, port = address.rpartition(":")
    patience = max(min(_ATTEMPT, deadline - time.monotonic()), 0.1)
    try:
        async with asyncio.timeout(patience):
            await try_connection(host.strip("[]"), int(port), arguments)
    except (OSError, kafka.KafkaError, TimeoutError, BrokerError) as error:
        return _refusal(error)
    return None


def _refusal(error: BaseException) -> Refusal:
    """Derive the cause from how the broker reacts to the first bytes of a connection.

    Kafka silently closes a connection if only one side uses TLS or a log-in, and also while it
    starts or stops; so a retry may succeed.
    """
    cause = error.__cause__
    for kind, refusal in _REFUSALS.items():
        if isinstance(error, kind) or isinstance(cause, kind):
            return refusal
    if isinstance(error, BrokerError):
        return Refusal(str(error), final=True)
    if isinstance(error, ssl.SSLCertVerificationError):
        return Refusal(_distrust(error), final=True)
    if isinstance(error, ssl.SSLError) or isinstance(cause, ssl.SSLError):
        failure = error if isinstance(error, ssl.SSLError) else cause
        reason = str(getattr(failure, "reason", "")).replace("_", " ").lower()
        if _OUR_CERTIFICATE.search(reason):
            return Refusal(
                f"it does not accept our certificate ({reason}); see broker.security.cert_file",
                final=True,
            )
        return Refusal(f"no TLS connection ({reason}); see broker.security", final=True)
    return Refusal(str(error) or type(error).__name__)


_OUR_CERTIFICATE = re.compile(
    r"alert .*(certificate (expired|unknown|revoked)|bad cert|unknown ca)"
)
"""What a server says of a client's certificate that it has been shown."""
_EXPIRED = 10
_OTHER_HOST = (62, 64)
"""OpenSSL's codes for a certificate that is out of date, or for another name or address."""


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "its certificate has expired; the broker needs a new one"
    if error.verify_code in _OTHER_HOST:
        return (
            "its certificate is for another host name; see broker.bootstrap and"
            " broker.security.check_hostname"
        )
    return f"its certificate is not trusted ({error.verify_message}); see broker.security.ca_file"


_REFUSALS: dict[type[BaseException], Refusal] = {
    kafka.SaslAuthenticationFailed: Refusal(
        "it does not accept the user name and password, or the token; see broker.security",
        final=True,
    ),
    kafka.UnsupportedSaslMechanismError: Refusal(
        "it does not offer broker.security.mechanism", final=True
    ),
    kafka.IllegalSaslStateError: Refusal(
        "it does not ask for a password there; see broker.security.protocol", final=True
    ),
    socket.gaierror: Refusal("its host name is not known; see broker.bootstrap"),
    ConnectionRefusedError: Refusal("nothing listens there; is it running? See broker.bootstrap"),
    ConnectionResetError: Refusal("it ends the connection; see broker.security.protocol"),
    asyncio.IncompleteReadError: Refusal("it ends the connection; see broker.security.protocol"),
    TimeoutError: Refusal("it does not answer as Kafka does; see broker.bootstrap"),
}
