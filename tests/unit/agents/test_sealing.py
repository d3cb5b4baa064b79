"""Features under a learner's keys: what opens, what does not, and how keys are changed."""

import base64

import pytest

from agents.clients.splitting import Splitter
from agents.sealing import KeyMissingError, KeyRing, WrongKeyError, learner_rings
from agents.testing import Pipeline
from schemas.sealed import Sealed, read
from settings.errors import SettingsError
from settings.loading import load_settings
from streams.engine.errors import FinalError
from streams.kafka.topics import Topics
from tests.inline_pipeline import configured

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
VALUE = 0.7364519283641
LEARNING = 'learners.b.rules={well={kind="bayes"}}'


def keys(folder, *names):
    """Return overrides that give learner b these keys, the first of which encrypts."""
    files = {"old": OLD, "new": NEW, "short": b"x" * 16}
    for name in names:
        (folder / name).write_text(base64.b64encode(files[name]).decode() + "\n")
    listed = ", ".join(f'{{id="{name}", file="{folder / name}"}}' for name in names)
    return f"privacy.keys={{b=[{listed}]}}"


def kept(pipeline):
    """Return the rows that learner b keeps, by patient."""
    table = pipeline.agents["local.b"].tables["features"]
    return {key.decode(): value for key, value in table.items()}


@pytest.mark.parametrize(
    ("place", "name"), [("instances.a", "p2"), ("instances.b", "p1"), ("waiting", "p1")]
)
def test_what_is_sealed_opens_only_in_its_place(place, name):
    ring = KeyRing("instances.a", {"old": OLD})
    sealed = ring.seal("p1", b"[1]")
    assert ring.open("p1", sealed) == b"[1]"
    with pytest.raises(WrongKeyError):
        KeyRing(place, {"old": OLD}).open(name, sealed)


def test_the_first_key_seals_and_all_open():
    before = KeyRing("x", {"old": OLD}).seal("p", b"1")
    ring = KeyRing("x", {"new": NEW, "old": OLD})
    assert (ring.open("p", before), ring.seal("p", b"2").key) == (b"1", "new")
    with pytest.raises(KeyMissingError):
        KeyRing("x", {"new": NEW}).open("p", before)


@pytest.mark.parametrize("content", [b"", b"short", bytes(40)])
def test_what_was_never_sealed_does_not_open(content):
    with pytest.raises(WrongKeyError):
        KeyRing("x", {"old": OLD}).open("p", Sealed("old", content))


def test_no_two_records_are_alike():
    ring = KeyRing("x", {"old": OLD})
    assert len({ring.seal("p", b"1").content for _ in range(100)}) == 100


def test_a_text_that_is_not_a_key_is_reported_but_not_shown(tmp_path):
    settings = configured(tmp_path, keys(tmp_path, "short"))
    with pytest.raises(
        SettingsError, match=r"privacy.keys.b: key short.*32 random bytes"
    ) as raised:
        learner_rings(settings, "b")
    assert base64.b64encode(b"x" * 16).decode() not in str(raised.value)


def test_a_key_file_that_is_missing_is_named(tmp_path):
    settings = configured(tmp_path, keys(tmp_path, "old"))
    (tmp_path / "old").unlink()
    with pytest.raises(SettingsError, match=r"file .*old cannot be read: No such file"):
        Splitter(settings)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('privacy.keys={nobody=[{id="k", env="K"}]}', "is not a learner of these settings"),
        ('privacy.keys={b=[{id="k", env="K"}, {id="k", env="L"}]}', "two keys have the same id"),
        ('privacy.keys={b=[{id="k"}]}', "must name either env or file"),
    ],
)
def test_settings_of_keys_are_checked(tmp_path, override, message):
    configured(tmp_path)
    with pytest.raises(SettingsError, match=message):
        load_settings(tmp_path / "ensemble.toml", [override])


def test_hexadecimal_digits_from_the_environment_are_a_key(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY_OF_B", OLD.hex())
    settings = configured(tmp_path, 'privacy.keys={b=[{id="old", env="KEY_OF_B"}]}')
    sealed = learner_rings(settings, "b").wire.seal("p", b"1")
    assert KeyRing("instances.b", {"old": OLD}).open("p", sealed) == b"1"


def test_a_learner_reads_and_keeps_features_that_nobody_else_can_read(tmp_path):
    settings = configured(tmp_path, LEARNING, keys(tmp_path, "old"))
    pipeline = Pipeline(settings)
    assert pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": VALUE}) is not None
    (sent,) = pipeline.published[Topics.of(settings).instances("b")]
    assert repr(VALUE).encode() not in sent.values[0]
    row = kept(pipeline)["p1"][8:]
    assert len(row) > 8, "it is encrypted"
    pipeline.restart()
    pipeline.label("p1", "ill")
    assert not kept(pipeline)
    assert not pipeline.dead_letters


def test_the_learner_learns_the_same_with_and_without_keys(tmp_path):
    models = []
    for override in ([], [keys(tmp_path, "old")]):
        pipeline = Pipeline(configured(tmp_path, LEARNING, *override))
        for k in range(6):
            pipeline.patient(f"p{k}", {"x": 0.2, "y": 0.3, "z": k / 6})
            pipeline.label(f"p{k}", "ill" if k > 2 else "well")
        model = pipeline.agents["local.b"].processor._models.get(b"well")
        models.append({key: array.tolist() for key, array in model.items()})
    assert models[0] == models[1]
    assert models[0]["learned"] == 6


def test_keys_are_set_changed_and_dropped_while_features_wait(tmp_path):
    pipeline = Pipeline(configured(tmp_path, LEARNING))
    for step, names in enumerate([(), ("old",), ("new", "old"), ("new",)]):
        settings = configured(tmp_path, LEARNING, *([keys(tmp_path, *names)] if names else []))
        if step == 3:  # what is under the old key is labelled before the key goes
            pipeline.label("p1", "ill")
        pipeline = moved(pipeline, settings)
        pipeline.patient(f"p{step}", {"x": 0.2, "y": 0.3, "z": 0.1 * step})
        models = pipeline.agents["local.b"].tables["learned"]
        for model in map(models.get, models.keys()):
            assert names
            assert model.startswith(bytes([len(names[0])]) + names[0].encode())
    assert set(kept(pipeline)) == {"p0", "p2", "p3"}, "those in the clear still wait"
    assert not pipeline.dead_letters


def test_models_under_a_key_that_is_gone_are_refused(tmp_path):
    pipeline = Pipeline(configured(tmp_path, LEARNING, keys(tmp_path, "old")))
    pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": VALUE})
    pipeline.label("p1", "ill")
    with pytest.raises(FinalError, match=r"its models are encrypted with the key 'old'; add it to"):
        moved(pipeline, configured(tmp_path, LEARNING))


def test_a_model_of_another_partition_under_an_unknown_key_is_left_out(tmp_path, caplog):
    """While keys are changed, workers that have the new key write with it before others have it."""
    rows = {}
    for name in ("old", "new"):
        settings = configured(tmp_path, LEARNING, keys(tmp_path, name))
        pipeline = Pipeline(settings)
        pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": VALUE})
        pipeline.label("p1", "ill")
        rows[name] = dict(pipeline.agents["local.b"].tables["learned"].items())
    models = pipeline.agents["local.b"].processor._models
    assert len(models.pooled(b"well", [rows["new"]])) == 2
    assert not caplog.text
    assert len(models.pooled(b"well", [rows["old"], rows["new"], {}])) == 2
    assert "encrypted with a key that is not in privacy.keys.b" in caplog.text


def moved(pipeline, settings):
    """Let a pipeline continue under other settings, from the state that it has."""
    target = Pipeline(settings)
    for name, agent in pipeline.agents.items():
        agent.spec = target.agents[name].spec
    pipeline.restart()
    pipeline._splitter = target._splitter
    return pipeline


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("new",), "are encrypted with the key 'old'; add it to privacy.keys.b"),
        ((), "are encrypted with the key 'old'; add it to privacy.keys.b"),
    ],
)
def test_a_worker_without_the_key_of_waiting_features_says_so(tmp_path, names, message):
    pipeline = Pipeline(configured(tmp_path, LEARNING, keys(tmp_path, "old")))
    pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": VALUE})
    changes = [keys(tmp_path, *names)] if names else []
    with pytest.raises(FinalError, match=message):
        moved(pipeline, configured(tmp_path, LEARNING, *changes))


def test_a_worker_with_another_key_of_the_same_id_says_so(tmp_path):
    pipeline = Pipeline(configured(tmp_path, LEARNING, keys(tmp_path, "old")))
    pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": VALUE})
    settings = configured(tmp_path, LEARNING, keys(tmp_path, "old"))
    (tmp_path / "old").write_text(NEW.hex())
    with pytest.raises(FinalError, match="cannot be decrypted with the key 'old'"):
        moved(pipeline, settings)


def instance(settings, name, z):
    return Splitter(settings).one(name, {"x": 0.2, "y": 0.3, "z": z}, 5)[
        Topics.of(settings).instances("b")
    ]


@pytest.mark.parametrize(
    ("reader", "detail"),
    [
        ((), "features in the clear: there are no keys here"),
        (("new",), "expected a key that this learner has"),
    ],
)
def test_a_record_without_its_key_is_a_dead_letter_unchanged(tmp_path, reader, detail):
    sealed = instance(configured(tmp_path, keys(tmp_path, "old")), "p1", VALUE)
    pipeline = Pipeline(configured(tmp_path, *([keys(tmp_path, *reader)] if reader else [])))
    pipeline.publish(pipeline.topics.instances("b"), b"p1", sealed)
    (letter,) = pipeline.dead_letters
    assert (letter.reason, letter.value) == ("undecryptable", sealed)
    assert detail in letter.detail


@pytest.mark.parametrize("alter", ["id", "content", "base64", "key"])
def test_a_record_that_was_altered_is_a_dead_letter(tmp_path, alter):
    settings = configured(tmp_path, keys(tmp_path, "old"))
    value = instance(settings, "p1", VALUE)
    text = value.decode().split('"x":"')[1].split('"')[0]
    changed = {
        "id": value.replace(b'"p1"', b'"p2"'),
        "content": value.replace(text[-8:].encode(), b"AAAAAAAA"),
        "base64": value.replace(text.encode(), b"hb1.old.***"),
        "key": value.replace(b"hb1.old.", b"hb1.other."),
    }[alter]
    assert changed != value
    pipeline = Pipeline(settings)
    pipeline.publish(pipeline.topics.instances("b"), b"p1", changed)
    assert [letter.reason for letter in pipeline.dead_letters] == ["undecryptable"]


def test_contexts_have_keys_of_their_own(tmp_path):
    (tmp_path / "old").write_text(OLD.hex())
    settings = configured(
        tmp_path,
        "ensemble.mode=ch",
        'ensemble.context={features=[{name="dose", low=0, high=1}], cuts=2}',
        f'privacy.context_keys=[{{id="old", file="{tmp_path / "old"}"}}]',
    )
    pipeline = Pipeline(settings)
    diagnosis = pipeline.patient("p1", {"x": 0.2, "y": 0.3, "z": 0.4, "dose": VALUE})
    assert diagnosis.context == "1"
    (sent,) = pipeline.published[pipeline.topics.contexts]
    assert repr(VALUE).encode() not in sent.values[0]
    assert read(sent.values[0].decode().split('"')[9]).key == "old"
