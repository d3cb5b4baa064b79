"""`hb settings` and how `hb` starts."""

import subprocess
import sys

from settings.loading import load_settings
from tests.settings_files import GOOD, write


def test_check_says_that_a_file_is_sound(hb, tmp_path):
    write(tmp_path)
    run = hb("settings", "check")
    assert run.code == 0
    assert "ensemble.toml is valid" in run.out
    assert "left" in run.out
    assert "right" in run.out
    assert run.err == ""


def test_check_lists_problems(hb, tmp_path):
    file = write(tmp_path, GOOD.replace("alpha = 1.5", "alpha = 0").replace('"toy"', '"T"'))
    run = hb("settings", "check")
    assert (run.code, run.out) == (3, "")
    assert run.err.splitlines() == [
        "hb: 2 problems in the settings:",
        (
            "ensemble.toml:3: name: must be a name of at most 40 lower-case letters, digits, - and"
            " _, beginning with a letter (it becomes part of topic names and metric labels)"
        ),
        "ensemble.toml:13: defaults.alpha: must be greater than 0 (is 0)",
    ]
    run = hb("settings", "check", "--json", "--settings", file)
    assert (run.code, run.err) == (3, "")
    assert run.json["valid"] is False
    assert run.json["problems"][1] == {
        "where": f"{file}:13",
        "key": "defaults.alpha",
        "message": "must be greater than 0 (is 0)",
    }


def test_a_missing_file_is_one_line(hb):
    run = hb("settings", "check")
    assert run.code == 3
    assert run.err.startswith("hb: ensemble.toml: there is no such settings file; create one with")
    assert len(run.err.splitlines()) == 1
    assert hb("settings", "check", "--json").json["problems"][0]["message"].startswith("ensemble")


def test_check_warns_of_what_is_not_there(hb, tmp_path, monkeypatch):
    security = """[broker.security]
protocol = "sasl_ssl"
ca_file = "ca.pem"
username = "u"
password = {env = "HB_TEST_PASSWORD"}
"""
    write(tmp_path, GOOD + security)
    run = hb("settings", "check")
    assert run.code == 0
    assert "broker.security.password: the environment variable HB_TEST_PASSWORD is not" in run.err
    assert "broker.security.ca_file: the file" in run.err
    monkeypatch.setenv("HB_TEST_PASSWORD", "s3cret")
    (tmp_path / "ca.pem").touch()
    assert hb("settings", "check", "--json").json["warnings"] == []
    for command in (["show"], ["show", "--json"], ["check"]):
        assert "s3cret" not in hb("settings", *command).out


def test_show_prints_a_file_that_reads_back(hb, tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("HB_SET__TOPICS__PARTITIONS", "8")
    run = hb("settings", "show", "--set", "ensemble.mode=wm")
    assert run.code == 0
    assert 'mode = "wm"  # --set ensemble.mode' in run.out
    assert "partitions = 8  # HB_SET__TOPICS__PARTITIONS" in run.out
    monkeypatch.delenv("HB_SET__TOPICS__PARTITIONS")
    shown = load_settings(write(tmp_path, run.out, "shown.toml"))
    assert (shown.ensemble.mode, shown.topics.partitions) == ("wm", 8)


def test_show_as_json(hb, tmp_path):
    write(tmp_path)
    shown = hb("settings", "show", "--json").json
    assert shown["settings"]["learners"]["left"]["features"][0]["high"] == 100
    assert shown["settings"]["ensemble"]["label_ttl"] == "7d"
    assert shown["origins"]["learners.left.alpha"] == "[defaults]"


def test_the_reference_is_printed(hb):
    run = hb("settings", "reference")
    assert run.code == 0
    assert run.out.startswith("# The settings file")


def test_wrong_usage_is_exit_code_2(hb):
    assert hb("settings", "chekc").code == 2
    assert hb("features", "fit").code == 2
    assert hb("init", "--dataset", "iris").code == 2


def test_hb_starts_without_heavy_imports():
    heavy = "numpy pydantic sklearn tomlkit matplotlib faust aiokafka importlib.metadata"
    code = (
        f"import sys, cli.main;print(*(name for name in {heavy.split()!r} if name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_keys_complete(monkeypatch, tmp_path):
    """What bash asks for after `hb settings show --set ensemble.fu`."""
    run = subprocess.run(
        [sys.executable, "-c", "from cli.main import app; app(prog_name='hb')"],
        env={
            "_HB_COMPLETE": "complete_bash",
            "COMP_WORDS": "hb settings show --set ensemble.fu",
            "COMP_CWORD": "4",
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["ensemble.fusion_timeout="]


def test_check_says_how_large_models_are(hb, tmp_path):
    wide = ", ".join(f'{{ name = "f{i}", low = 0.0, high = 1.0 }}' for i in range(250))
    text = (
        GOOD
        + f"""
[learners.wide]
cuts = 1
features = [{wide}]
rules.all = {{ kind = "committee", preset = "kdi" }}
"""
    )
    write(tmp_path, text)
    run = hb("settings", "check", "--json")
    assert run.code == 0
    size = run.json["model_bytes"]["learners.wide.rules.all"]
    assert size > 1_000_000
    (warning,) = run.json["warnings"]
    assert f"learners.wide.rules.all: its model takes {size:,} bytes" in warning
    assert "hb topics check --alter" in warning
