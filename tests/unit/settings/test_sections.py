"""Durations, secrets, security and topics: the parts that every section is made of."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from learners.local.features import Categorical, Real
from learners.local.scaling import MinMax, Online, Quantile, ZLogistic
from settings.errors import SettingsError
from settings.sections.base import FOREVER, Secret, format_duration, milliseconds, parse_duration
from settings.sections.broker import BrokerSettings, SecuritySettings
from settings.sections.ensemble import ContextSettings
from settings.sections.features import FeatureSettings, build_space
from settings.sections.learners import inherit
from settings.sections.topics import RetentionSettings, TopicSettings


@given(st.integers(1, 10**12))
def test_durations_survive_being_written(ms):
    duration = timedelta(milliseconds=ms)
    assert milliseconds(parse_duration(format_duration(duration))) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250ms", 250), ("5s", 5000), ("1.5m", 90_000), ("2h", 7_200_000), ("7d", 604_800_000)],
)
def test_durations(text, ms):
    assert milliseconds(parse_duration(text)) == ms


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 weeks", "1e3s", "99999999999999d", "0s"])
def test_what_is_no_duration(text):
    with pytest.raises(ValidationError):
        BrokerSettings.model_validate({"request_timeout": text})


def test_retention_may_have_no_end():
    retention = RetentionSettings.model_validate({"labels": "forever"})
    assert retention.labels == FOREVER
    assert milliseconds(retention.labels) == -1
    assert retention.model_dump(mode="json")["labels"] == "forever"
    topics = TopicSettings(retention=retention)
    assert topics.retention_of("labels") == FOREVER
    assert topics.retention_of("instances") == timedelta(days=7)


@pytest.mark.parametrize(
    ("options", "copies"),
    [({}, 1), ({"replication": 3}, 2), ({"replication": 3, "min_in_sync": 1}, 1)],
)
def test_copies_in_sync_follow_the_replication(options, copies):
    assert TopicSettings.model_validate(options).min_in_sync == copies


@pytest.mark.parametrize(
    ("security", "blamed"),
    [
        ({"ca_file": "x"}, "ca_file"),
        ({"username": "u"}, "username"),
        ({"protocol": "sasl_ssl", "username": "u"}, "password"),
        ({"protocol": "sasl_ssl", "password": {"env": "P"}}, "username"),
        ({"protocol": "sasl_plaintext", "ca_file": "x"}, "ca_file"),
        ({"protocol": "ssl", "password": {"env": "P"}}, "password"),
        ({"protocol": "ssl", "cert_file": "x"}, "cert_file"),
        ({"protocol": "ssl", "key_password": {"env": "P"}}, "key_password"),
        ({"protocol": "ssl", "mechanism": "PLAIN"}, "mechanism"),
    ],
)
def test_security_that_does_not_fit_together(security, blamed):
    with pytest.raises(ValidationError) as raised:
        SecuritySettings.model_validate(security)
    error = raised.value.errors()[0]
    path = [*error["loc"], *(error.get("ctx", {}).get("problems", [((), "")])[0][0])]
    assert path == [blamed]


@pytest.mark.parametrize(
    "security",
    [
        {},
        {"protocol": "ssl"},
        {"protocol": "ssl", "ca_file": "ca", "cert_file": "c", "key_file": "k"},
        {"protocol": "sasl_plaintext", "username": "u", "password": {"env": "P"}},
        {"protocol": "sasl_ssl", "username": "u", "password": {"file": "p"}, "ca_file": "ca"},
    ],
)
def test_security_that_fits(security):
    settings = SecuritySettings.model_validate(security)
    assert settings.encrypted == ("ssl" in settings.protocol.removeprefix("sasl_"))
    assert settings.logs_in == (settings.username is not None)


def test_secrets_are_read_when_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("HB_TEST_SECRET", "s3cret")
    assert Secret(env="HB_TEST_SECRET").read() == "s3cret"
    (tmp_path / "secret").write_text("from file\n")
    assert Secret(file=tmp_path / "secret").read() == "from file"


def test_secrets_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("HB_TEST_SECRET", raising=False)
    with pytest.raises(SettingsError, match="variable HB_TEST_SECRET is missing"):
        Secret(env="HB_TEST_SECRET").read()
    with pytest.raises(SettingsError, match="No such file"):
        Secret(file=tmp_path / "none").read()
    (tmp_path / "empty").touch()
    with pytest.raises(SettingsError, match="is empty"):
        Secret(file=tmp_path / "empty").read()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(SettingsError, match="not text"):
        Secret(file=tmp_path / "binary").read()


@pytest.mark.parametrize("place", [{}, {"env": "A", "file": "b"}, "plain"])
def test_a_secret_has_one_place(place):
    with pytest.raises(ValidationError) as raised:
        Secret.model_validate(place)
    assert "plain" not in str(raised.value)


@pytest.mark.parametrize(
    ("bootstrap", "addresses"),
    [
        ("", ()),
        ("a:1", ("a:1",)),
        ("k1.example:9092, k2.example:9092", ("k1.example:9092", "k2.example:9092")),
        ("[::1]:9092", ("[::1]:9092",)),
    ],
)
def test_broker_addresses(bootstrap, addresses):
    broker = BrokerSettings(bootstrap=bootstrap)
    assert broker.addresses == addresses
    assert broker.embedded == (not addresses)


@pytest.mark.parametrize(
    "bootstrap", ["a", "a:", ":1", "a:0", "a:65536", "a:1,", "a b:1", "http://a:1"]
)
def test_what_is_no_address(bootstrap):
    with pytest.raises(ValidationError):
        BrokerSettings(bootstrap=bootstrap)


@pytest.mark.parametrize(
    ("table", "built"),
    [
        ({"low": 1, "high": 2}, MinMax(1, 2)),
        ({"scale": "minmax", "low": 1.5, "high": 2}, MinMax(1.5, 2)),
        ({"scale": "zlog", "mean": 0, "std": 3}, ZLogistic(0, 3)),
        ({"scale": "quantile", "knots": [1, 2, 2]}, Quantile((1, 2, 2))),
    ],
)
def test_real_features_build_their_scaling(table, built):
    feature = FeatureSettings.model_validate({"name": "f", **table})
    assert feature.fitted
    assert feature.build() == Real("f", built)


def test_categorical_features_build():
    feature = FeatureSettings.model_validate({"name": "f", "categories": ["a", "b"]})
    assert feature.build() == Categorical("f", ("a", "b"))
    assert build_space([feature]).d == 1


@pytest.mark.parametrize("table", [{}, {"scale": "online"}])
def test_a_number_needs_no_more_than_its_name(table):
    feature = FeatureSettings.model_validate({"name": "f", **table})
    assert feature.fitted
    built = feature.build()
    assert isinstance(built.scaling, Online)
    assert feature.build().scaling is not built.scaling, "each learner moves its own"


@pytest.mark.parametrize("table", [{"scale": "minmax"}, {"scale": "zlog"}, {"categories": []}])
def test_unfitted_features_are_known_as_such_and_do_not_build(table):
    feature = FeatureSettings.model_validate({"name": "f", **table})
    assert not feature.fitted
    with pytest.raises(SettingsError, match="hb features fit"):
        feature.build()


@pytest.mark.parametrize(
    ("defaults", "learner", "result"),
    [
        ({"alpha": 1}, {}, {"alpha": 1}),
        ({"alpha": 1}, {"alpha": 2}, {"alpha": 2}),
        ({"horizon": 5}, {"doubling": 6}, {"doubling": 6}),
        ({"doubling": 5, "cuts": 1}, {"horizon": 6}, {"cuts": 1, "horizon": 6}),
        ({"rules": {"a": 1}}, {"rules": {"b": 2}}, {"rules": {"b": 2}}),
    ],
)
def test_learners_inherit_what_they_leave_out(defaults, learner, result):
    assert inherit(defaults, learner) == result


def test_a_context_needs_scales_that_stay():
    table = {"features": [{"name": "a", "low": 0, "high": 1}, {"name": "f"}]}
    assert not ContextSettings.model_validate(table).fitted
    with pytest.raises(ValidationError, match="must stay as it is"):
        ContextSettings.model_validate(table, context={"fitted": True})
