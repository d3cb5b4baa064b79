"""From the settings' `[broker]` section to the arguments that every aiokafka client takes."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from settings.errors import SettingsError
from settings.sections.base import milliseconds
from settings.sections.broker import BrokerSettings, SecuritySettings


def client_arguments(broker: BrokerSettings) -> dict[str, Any]:
    """Return address, time-out and protection, for producers, consumers and admin clients.

    Without an address in the settings it is the embedded broker's, which must be running.
    """
    broker = located(broker)
    return {
        "bootstrap_servers": list(broker.addresses),
        "request_timeout_ms": milliseconds(broker.request_timeout),
        **protection(broker.security),
    }


def located(broker: BrokerSettings) -> BrokerSettings:
    """Return the settings, with the embedded broker's address and protection if it is used."""
    if not broker.embedded:
        return broker
    try:
        from streams.broker import EmbeddedBroker  # noqa: PLC0415 - slow to import, rarely needed
    except ModuleNotFoundError:
        raise SettingsError(
            "broker.bootstrap is empty, and this install has no embedded broker: set it to the"
            " address of one"
        ) from None
    embedded = EmbeddedBroker().settings()
    return embedded.model_copy(update={"request_timeout": broker.request_timeout})


def protection(security: SecuritySettings) -> dict[str, Any]:
    """Return the arguments for encryption and log-in; secrets are read here and kept nowhere else.

    >>> protection(SecuritySettings())
    {'security_protocol': 'PLAINTEXT'}
    """
    arguments: dict[str, Any] = {"security_protocol": security.protocol.upper()}
    if security.encrypted:
        arguments["ssl_context"] = ssl_context(security)
    if security.password is not None:
        arguments["sasl_mechanism"] = security.mechanism
        arguments["sasl_plain_username"] = security.username
        arguments["sasl_plain_password"] = security.password.read()
    if security.token is not None:
        try:
            from streams.kafka.tokens import token_provider  # noqa: PLC0415 - few need it
        except ModuleNotFoundError as error:
            raise SettingsError(f"log-in by token needs the package {error.name}") from None
        arguments["sasl_mechanism"] = security.mechanism
        arguments["sasl_oauth_token_provider"] = token_provider(security.token)
    return arguments


def ssl_context(security: SecuritySettings) -> ssl.SSLContext:
    """Return the TLS context: which brokers to trust and, if configured, our own certificate.

    With `ca_file` only its certificates are trusted: public authorities cannot vouch for a private
    broker.
    """
    with _blaming("ca_file", security.ca_file):
        context = ssl.create_default_context(cafile=security.ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.check_hostname
    if security.cert_file is not None:
        secret = security.key_password
        password = secret.read() if secret else ""
        with _blaming("cert_file", security.cert_file):
            # A password is always given: without one OpenSSL would ask for it on the terminal.
            context.load_cert_chain(security.cert_file, security.key_file, password)
    return context


@contextmanager
def _blaming(key: str, file: Path | None) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        reason = f"{error.reason or 'not PEM'}".replace("_", " ").lower()
        raise SettingsError(
            f"broker.security.{key}: {file} cannot be used ({reason}); it must be PEM, and the key"
            " must belong to the certificate and be opened by key_password if it is encrypted"
        ) from None
    except OSError as error:
        raise SettingsError(
            f"broker.security.{key}: {file}, or the key beside it, cannot be read: {error.strerror}"
        ) from None
