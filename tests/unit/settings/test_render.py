"""`hb settings show` and the reference say what the models say."""

from pathlib import Path

import pytest

from settings.keys import all_keys, complete, keys_in
from settings.loading import load_settings, read_source, validate
from settings.model import Settings
from settings.reference import reference_page
from settings.render import origins, render
from tests.settings_files import GOOD, write

SECURE = """
[ensemble.context]
features = [{name = "age", low = 0, high = 100}]
[broker.security]
protocol = "sasl_ssl"
ca_file = "ca.pem"
username = "u"
password = {env = "HB_PASSWORD"}
"""


@pytest.mark.parametrize("text", [GOOD, GOOD + SECURE])
@pytest.mark.parametrize("options", [(), ("topics.replication=3", "learners.left.alpha=2")])
def test_what_is_shown_reads_back_as_the_same(tmp_path, text, options):
    source = read_source(write(tmp_path, text), options, environ={})
    settings = validate(source)
    shown = write(tmp_path, render(settings, source), "shown.toml")
    assert load_settings(shown, environ={}) == settings


def test_shown_values_say_where_they_came_from(tmp_path):
    source = read_source(
        write(tmp_path, GOOD + SECURE),
        ["learners.left.alpha=2"],
        environ={"HB_SET__DEFAULTS__EXPLORATION": "0.5"},
    )
    lines = render(validate(source), source).splitlines()
    left = lines[lines.index("[learners.left]") : lines.index("[learners.right]")]
    assert "alpha = 2.0  # --set learners.left.alpha" in left
    assert "horizon = 1000  # [defaults]" in left
    assert "exploration = 0.5  # HB_SET__DEFAULTS__EXPLORATION" in left
    assert "backoff = 0.0  # default" in left
    assert "# doubling is not set" in left
    assert 'password = {env = "HB_PASSWORD"}' in lines
    assert 'mode = "ah"' in lines


def test_origins_name_only_what_is_not_in_the_file(tmp_path):
    source = read_source(write(tmp_path), ["ensemble.mode=wm"], environ={})
    sources = origins(validate(source), source)
    assert sources["ensemble.mode"] == "--set ensemble.mode"
    assert sources["topics.replication"] == "default"
    assert "topics.partitions" not in sources
    assert "learners.left.features" not in sources


def test_the_reference_page_is_in_step():
    page = Path(__file__).parents[3] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == reference_page(), (
        "run: hb settings reference > docs/settings.md"
    )


def test_every_key_is_in_the_reference_with_a_meaning():
    page = reference_page()
    for key in all_keys():
        assert key.field.description, key.path
        if key.inner is None:
            assert f"| `{key.path[-1]}` |" in page or "env" in key.path or "file" in key.path


def test_keys_follow_the_models():
    assert keys_in(()) == list(Settings.model_fields)
    assert keys_in(("learners", "any", "rules", "other")) == ["kind", "weight"]
    assert keys_in(("nowhere",)) == []
    assert "topics.retention.labels=" in complete("topics.")
    assert complete("zzz") == []
