"""`[broker]`: which Kafka, and how to log in to it."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from settings.sections.base import Duration, FilePath, Secret, Section, parse_duration, problem

Protocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


class TokenSettings(Section):
    """Where tokens come from, with mechanism OAUTHBEARER."""

    url: str | None = Field(
        default=None,
        description="The token endpoint of an OpenID Connect issuer; tokens are asked for by client"
        " credentials and renewed before they expire.",
        pattern="^https?://",
    )
    client_id: str | None = Field(default=None, description="Our name there.", min_length=1)
    client_secret: Secret | None = Field(default=None, description="Our secret there.")
    scope: str | None = Field(default=None, description="The scope to ask for, if any.")
    function: str | None = Field(
        default=None,
        description="Instead: `package.module:function` that returns a token, for clouds with a"
        " scheme of their own. It cannot be named by the environment.",
    )

    @model_validator(mode="after")
    def _check_source(self) -> "TokenSettings":
        if (self.url is None) == (self.function is None):
            raise problem("needs either url or function")
        if self.url is not None and (self.client_id is None or self.client_secret is None):
            raise problem("needs client_id and client_secret with url")
        return self


class SecuritySettings(Section):
    """How connections are encrypted, and who we are."""

    protocol: Protocol = Field(
        default="plaintext",
        description="ssl and sasl_ssl encrypt; sasl_plaintext and sasl_ssl log in, with a password"
        " or a token.",
    )
    ca_file: FilePath | None = Field(
        default=None,
        description="Certificates (PEM) of the authorities that sign brokers' certificates; the"
        " system's if not set.",
    )
    cert_file: FilePath | None = Field(
        default=None, description="Our own certificate (PEM), for brokers that ask for one."
    )
    key_file: FilePath | None = Field(
        default=None, description="The private key (PEM) of cert_file."
    )
    key_password: Secret | None = Field(
        default=None, description="The password of key_file, if it has one."
    )
    check_hostname: bool = Field(
        default=True, description="Require that a broker's certificate names its host."
    )
    mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"] = Field(
        default="SCRAM-SHA-512",
        description="The SASL mechanism, with a sasl_ protocol. PLAIN shows the broker the password"
        " itself; OAUTHBEARER logs in with a token.",
    )
    token: TokenSettings | None = Field(
        default=None, description="Where tokens come from, with mechanism OAUTHBEARER."
    )
    username: str | None = Field(
        default=None, description="The user name, with a sasl_ protocol.", min_length=1
    )
    password: Secret | None = Field(
        default=None, description="The password, with a sasl_ protocol."
    )

    @property
    def encrypted(self) -> bool:
        """Connections use TLS."""
        return self.protocol.endswith("ssl")

    @property
    def logs_in(self) -> bool:
        """Connections log in with SASL."""
        return self.protocol.startswith("sasl_")

    @property
    def named(self) -> bool:
        """The broker knows who connects."""
        return self.logs_in or self.cert_file is not None

    @model_validator(mode="after")
    def _check_protocol_fits(self) -> "SecuritySettings":
        for key in ("ca_file", "cert_file", "key_file", "key_password"):
            if getattr(self, key) is not None and not self.encrypted:
                raise problem(f"protocol {self.protocol} does not encrypt", key)
        if (
            not self.logs_in
            and self.mechanism != SecuritySettings.model_fields["mechanism"].default
        ):
            raise problem(f"protocol {self.protocol} does not log in", "mechanism")
        by_token = self.mechanism == "OAUTHBEARER"
        for key, used in (("username", not by_token), ("password", not by_token),
                          ("token", by_token)):  # fmt: skip
            present = getattr(self, key) is not None
            if present and not self.logs_in:
                raise problem(f"protocol {self.protocol} does not log in", key)
            if present and not used:
                raise problem(f"mechanism {self.mechanism} does not use it", key)
            if self.logs_in and used and not present:
                raise problem(f"protocol {self.protocol} needs it", key)
        return self

    @model_validator(mode="after")
    def _check_certificate_has_key(self) -> "SecuritySettings":
        if (self.cert_file is None) != (self.key_file is None):
            raise problem("cert_file and key_file must be set together", "cert_file")
        if self.key_password is not None and self.key_file is None:
            raise problem("there is no key_file that it belongs to", "key_password")
        return self


def _check_addresses(value: str) -> str:
    for address in value.split(",") if value else ():
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match[1]) < 65536:
            raise problem('must be "host:port", or several separated by commas, or ""')
    return value


class BrokerSettings(Section):
    """Which Kafka to use."""

    bootstrap: Annotated[str, AfterValidator(_check_addresses)] = Field(
        default="",
        description='"host:port", or several separated by commas. Empty: the embedded broker of'
        " `hb broker`.",
    )
    request_timeout: Duration = Field(
        default=parse_duration("30s"), description="How long one request to the broker may take."
    )
    patience: Duration = Field(
        default=parse_duration("10s"),
        description="How long a command waits for a broker that does not answer before it says so;"
        " a worker says so at the same interval and keeps trying.",
    )
    security: SecuritySettings = Field(
        default=SecuritySettings(), description="Encryption and login."
    )

    @property
    def embedded(self) -> bool:
        """No address is set: the broker is the one that `hb broker` runs."""
        return not self.bootstrap

    @property
    def addresses(self) -> tuple[str, ...]:
        """The configured addresses, one by one."""
        return tuple(part.strip() for part in self.bootstrap.split(",") if part.strip())
