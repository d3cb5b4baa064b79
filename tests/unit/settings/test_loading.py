"""Files and overrides become settings, or a list of all their problems."""

import copy
import tomllib

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from settings.errors import SettingsError
from settings.loading import load_settings, read_source, source_of, validate
from settings.model import Settings
from settings.proposing.proposal import Proposal, proposed_text
from tests.settings_files import GOOD, write


def problems(tmp_path, text=GOOD, *overrides, environ=None):
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        load_settings(file, overrides, environ=environ or {})
    return str(raised.value).replace(str(tmp_path) + "/", "").splitlines()


def test_a_sound_file_gives_what_it_says(tmp_path):
    settings = load_settings(write(tmp_path), environ={})
    left, right = settings.learners["left"], settings.learners["right"]
    assert (left.horizon, left.doubling, left.alpha) == (1000, None, 1.5)
    assert (right.horizon, right.doubling, right.alpha) == (None, 100, 1.5)
    assert list(left.rules) == ["always"]
    assert list(right.rules) == ["learned"]
    assert right.rules["learned"].options == {"rate": 0.1}
    assert settings.topics.prefix == "toy."
    assert settings.worker.state.name == "toy"
    assert settings.ensemble.prefer == "yes"


def test_the_shortest_file_is_enough(tmp_path):
    text = """
    version = 1
    name = "x"
    labels = ["a", "b"]
    positive = "a"
    learners.l.features = [{name = "f", low = 0, high = 1}]
    learners.l.rules.r = {kind = "constant", label = "a"}
    """
    assert load_settings(write(tmp_path, text), environ={}).learners["l"].horizon == 10_000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "ensemble.toml:2: version: must be 1 (is 2)"),
        ("version = 1\n", "", "ensemble.toml: version: is missing"),
        (
            '"toy"',
            '"To y"',
            "ensemble.toml:3: name: must be a name of at most 40 lower-case letters",
        ),
        ('["no", "yes"]', '["yes"]', "ensemble.toml:4: labels: needs at least two labels"),
        ('["no", "yes"]', '["yes", "yes"]', "ensemble.toml:4: labels: must be distinct"),
        ('["no", "yes"]', '"yes"', "ensemble.toml:4: labels: must be a list"),
        ('positive = "yes"', 'positive = "y"', "ensemble.toml:5: positive: must be one of labels"),
        (
            "alpha = 1.5",
            "alpha = -1",
            "ensemble.toml:13: defaults.alpha: must be greater than 0 (is -1)",
        ),
        ("alpha = 1.5", "alpha = nan", "ensemble.toml:13: defaults.alpha: must be a finite number"),
        ("alpha = 1.5", 'alpha = "1"', "ensemble.toml:13: defaults.alpha: must be a number"),
        ("alpha = 1.5", "alhpa = 1.5", "defaults.alhpa: unknown key; did you mean alpha?"),
        ("alpha = 1.5", "xyzzy = 1.5", "defaults.xyzzy: unknown key (known here: horizon, "),
        (
            "doubling = 100",
            "doubling = 100\nhorizon = 3",
            "ensemble.toml:26: learners.right.doubling: horizon and doubling exclude each other",
        ),
        ("horizon = 1000", "horizon = 0.5", "defaults.horizon: must be a whole number (is 0.5)"),
        ("horizon = 1000", "horizon = true", "defaults.horizon: must be a whole number (is true)"),
        ("horizon = 1000", 'ties = "x"', "ensemble.toml:12: defaults.ties: must be"),
        (
            "horizon = 1000",
            "cuts = 9\nmax_cuts = 2",
            "ensemble.toml:12: defaults.cuts: must not be",
        ),
        (
            "[learners.right.rules.learned]",
            "[learners.right.rules.hash]",
            "learners.right.rules: a rule cannot be called hash",
        ),
        ("high = 100", "high = -1", "ensemble.toml:21: learners.left.features.0: min-max scaling"),
        (
            ", high = 100",
            "",
            "ensemble.toml:21: learners.left.features.0.low: low and high must be",
        ),
        (
            ", low = 0, high = 100",
            ', scale = "minmax"',
            "learners.left.features.0: has no low and high yet: learn",
        ),
        ("std = 12.5", "std = 0", "learners.left.features.1.std: must be greater than 0 (is 0)"),
        ("std = 12.5", "std = 1, low = 3", "features.1.low: does not belong to scale zlog"),
        (
            '"zlog"',
            '"log"',
            'features.1.scale: must be "online", "minmax", "zlog" or "quantile" (is "log")',
        ),
        ("[0.0, 1.0, 5.0]", "[0.0, 5.0, 1.0]", "features.0: quantile scaling needs"),
        ('["f", "m"]', '["f", "f"]', "learners.right.features.1: feature sex: categories must be"),
        ('["f", "m"]', "[]", "learners.right.features.1: has no categories yet"),
        ('["f", "m"]', '["f"], low = 1', "features.1.low: does not belong to a feature with cat"),
        ('name = "sex"', 'name = "dose"', "learners.right.features.1: this feature is listed"),
        ('name = "sex"', 'name = ""', "learners.right.features.1.name: must be printable text"),
        ("[learners.left]", "[learners.LEFT]", "ensemble.toml:19: learners.LEFT: must be a name"),
        (
            "[learners.left]\nfeatures",
            "[learners.left]\nfetures",
            "learners.left.features: is missing",
        ),
        (
            'kind = "logistic"',
            'kind = "logstic"',
            "rules.learned.kind: is not a kind of rule; did you",
        ),
        ("rate = 0.1", "rate = -1", "ensemble.toml:34: learners.right.rules.learned.rate: must be"),
        ("rate = 0.1", "speed = 1", "rules.learned.speed: unknown option (this kind has rate"),
        (
            'label = "yes"',
            'label = "?"',
            "ensemble.toml:17: defaults.rules.always.label: must be one",
        ),
        ('mode = "ah"', 'mode = "ha"', "ensemble.toml:37: ensemble.mode: is not a fusion mode"),
        ('mode = "ah"', 'mode = "ch"', "ensemble.mode: fusion mode 'ch' needs a context"),
        (
            'mode = "ah"',
            'mode = "stack"\neta_scale = 1.0',
            "ensemble.eta_scale: mode stack does not",
        ),
        (
            'mode = "ah"',
            'mode = "stack"\noptions = {clip = -1}',
            "ensemble.options.clip: clip must",
        ),
        ('mode = "ah"', "options = {clip = 1}", "ensemble.options.clip: mode wm takes rate"),
        ('mode = "ah"', 'prefer = "maybe"', "ensemble.prefer: must be one of labels"),
        ('"7d"', '"7 fortnights"', "ensemble.toml:38: ensemble.label_ttl: must be a duration such"),
        ('"7d"', "7", "ensemble.label_ttl: must be a duration such as"),
        ('"7d"', '"1s"', "ensemble.label_ttl: must be longer than fusion_timeout"),
        ("partitions = 2", "partitions = 0", "topics.partitions: must be 1 or more (is 0)"),
        ("partitions = 2", "min_in_sync = 2", "topics.min_in_sync: must not be larger than repl"),
        ("partitions = 2", 'prefix = "a b"', "topics.prefix: must be at most 100 letters"),
        (
            "[topics]",
            '[broker]\nbootstrap = "a:b"\n[topics]',
            'broker.bootstrap: must be "host:port"',
        ),
        ("[topics]", '[worker]\nstate = ""\n[topics]', "worker.state: must name a file or folder"),
        (
            "[topics]",
            "[sasl]\n[topics]",
            "ensemble.toml:40: sasl: unknown key (known here: version",
        ),
    ],
)
def test_a_problem_is_named_at_its_line(tmp_path, old, new, message):
    assert old in GOOD
    lines = problems(tmp_path, GOOD.replace(old, new))
    assert any(message in line for line in lines), lines


def test_all_problems_are_listed_once_and_in_order(tmp_path):
    text = GOOD.replace("alpha = 1.5", "alpha = 0").replace('"7d"', '"x"').replace('"toy"', '"T"')
    assert [line.split(": ")[:2] for line in problems(tmp_path, text)] == [
        ["3 problems in the settings:"],
        ["ensemble.toml:3", "name"],
        ["ensemble.toml:13", "defaults.alpha"],
        ["ensemble.toml:38", "ensemble.label_ttl"],
    ]


def test_every_wrong_option_of_a_rule_is_named(tmp_path):
    text = GOOD.replace("rate = 0.1", 'rate = -1\nspeed = 1\nscaling = "z"')
    where = "learners.right.rules.learned"
    assert [line.removeprefix("ensemble.toml:") for line in problems(tmp_path, text)[1:]] == [
        f"34: {where}.rate: must be a number above 0, at most 10",
        f"35: {where}.speed: unknown option (this kind has rate, l2, scaling, joint)",
        f"36: {where}.scaling: must be one of zscore, log, rank",
    ]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        # Nobody has these rules: both learners have their own.
        ('learners.left.rules={a={kind="constant", label="no"}}', "defaults.rules.b.rate: must be"),
        ('labels=["yes"]', "defaults.rules.b.rate: must be a number"),
        (
            'learners.left.rules={c={kind="committee", members=[{kind="lda", capacity=3}]}}',
            "rules.c.members: rule c/lda: option capacity: must be even",
        ),
        ('learners.left.rules={c={kind="constant"}}', "left.rules.c: label is missing; it is one"),
    ],
)
def test_rules_are_checked_whoever_has_them(tmp_path, option, message):
    wrong = '[defaults.rules.b]\nkind = "logistic"\nrate = 0\n\n[defaults.rules.always]'
    text = GOOD.replace("[defaults.rules.always]", wrong)
    assert any(message in line for line in problems(tmp_path, text, option))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nmode = wm\n", "ensemble.toml:2: not valid TOML: invalid value (text needs quotes"),
        ("a = 1\n\na = 2\n", "ensemble.toml:3: not valid TOML: cannot overwrite a value"),
        ("a = [1,\n", "ensemble.toml:1: not valid TOML"),
        ("[a\nb = 1\n", "ensemble.toml:1: not valid TOML"),
        ("", "ensemble.toml: version: is missing"),
    ],
)
def test_broken_toml_is_named_at_its_line(tmp_path, text, message):
    assert any(line.startswith(message) for line in problems(tmp_path, text))


WIDE = ", ".join(f'{{name = "f{i}", low = 0, high = 1}}' for i in range(70))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (f"learners.left={{features = [{WIDE}], cuts = 2}}", "learners.left: 70 features cut 2"),
        (f"ensemble.context={{features = [{WIDE}]}}", "ensemble.context: 70 features cut 2 ways"),
        ("learners={}", "learners: needs at least one learner"),
        ("learners={left = 3}", "learners.left: must be a table"),
        ("learners.left.features=[]", "learners.left.features: needs at least one feature"),
        ("learners.left.features=3", "learners.left.features: must be a list"),
        ("defaults.rules={}", "learners.left: has no rules"),
        ("defaults=3", "defaults: must be a table"),
        ("topics=3", "topics: must be a table"),
    ],
)
def test_whole_sections_that_cannot_be(tmp_path, option, message):
    assert any(message in line for line in problems(tmp_path, GOOD, option))


def test_an_option_of_the_wrong_type(tmp_path):
    text = GOOD.replace('mode = "ah"', 'mode = "stack"')
    (problem,) = problems(tmp_path, text, 'ensemble.options.clip="x"')
    assert "ensemble.options" in problem


def test_a_file_of_a_dictionary_is_demanded():
    with pytest.raises(ValidationError):
        Settings.model_validate([])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SettingsError, match="create one with `hb init`"):
        load_settings(tmp_path / "none.toml", environ={})
    with pytest.raises(SettingsError, match="cannot read it: Is a directory"):
        load_settings(tmp_path, environ={})
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        load_settings(tmp_path / "latin.toml", environ={})


def test_the_environment_names_the_file(tmp_path, monkeypatch):
    file = write(tmp_path)
    assert load_settings(environ={"HB_SETTINGS": str(file)}).name == "toy"
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}).name == "toy"


@pytest.mark.parametrize(
    ("options", "environ", "mode", "partitions"),
    [
        ([], {}, "ah", 2),
        (["ensemble.mode=wm"], {}, "wm", 2),
        ([], {"HB_SET__ENSEMBLE__MODE": "wm"}, "wm", 2),
        (["ensemble.mode=best"], {"HB_SET__ENSEMBLE__MODE": "wm"}, "best", 2),
        (["ensemble.mode=best", 'ensemble.mode="wm"'], {}, "wm", 2),
        (["topics={partitions = 5}"], {}, "ah", 5),
        ([], {"HB_SET__TOPICS__PARTITIONS": "7"}, "ah", 7),
    ],
)
def test_overrides(tmp_path, options, environ, mode, partitions):
    settings = load_settings(write(tmp_path), options, environ=environ)
    assert (settings.ensemble.mode, settings.topics.partitions) == (mode, partitions)


def test_overrides_reach_everywhere(tmp_path):
    text = GOOD.replace("[learners.left]", "[learners.left-hand]")
    settings = load_settings(
        write(tmp_path, text),
        ["learners.right.features.0.knots=[0, 2]", "worker.web_port=0", "defaults.alpha=3"],
        environ={"HB_SET__LEARNERS__LEFT_HAND__ALPHA": "2", "HB_SET__BROKER__BOOTSTRAP": "a:1"},
    )
    assert settings.learners["left-hand"].alpha == 2
    assert settings.learners["right"].alpha == 3
    assert settings.learners["right"].features[0].knots == (0, 2)
    assert settings.worker.web_port == 0
    assert settings.broker.addresses == ("a:1",)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("ensemble.mode=x", "--set ensemble.mode: is not a fusion mode"),
        ("ensemble.moed=wm", "--set ensemble.moed: unknown key; did you mean mode?"),
        ("topics={partitions = 0}", "--set topics: topics.partitions: must be 1 or more"),
        ("ensemble.mode", "--set: must be KEY=VALUE"),
        ("=3", "--set: must be KEY=VALUE"),
        ("name.x=1", "--set name.x: there is no table that could hold x"),
        ("learners.left.features.7.low=1", "--set learners.left.features.7.low: the list has no"),
    ],
)
def test_a_wrong_override_is_named(tmp_path, option, message):
    assert problems(tmp_path, GOOD, option)[0].startswith(message)


def test_a_wrong_variable_is_named(tmp_path):
    lines = problems(tmp_path, environ={"HB_SET__TOPICS__PARTITIONS": "many"})
    assert lines == ["HB_SET__TOPICS__PARTITIONS: topics.partitions: must be a whole number"]
    lines = problems(tmp_path, environ={"HB_SET____X": "1"})
    assert lines == ["HB_SET____X: a part of the key is empty"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RULES__PACKAGES", '["os"]'),
        ("RULES", '{packages = ["os"]}'),
        ("BROKER__SECURITY__TOKEN__FUNCTION", "os:getlogin"),
        ("BROKER__SECURITY", '{token = {function = "os:getlogin"}}'),
        ("LEARNERS__LEFT__RULES__MINE", '{kind = "callable", function = "os:system"}'),
        ("LEARNERS__LEFT__RULES__MINE__FUNCTION", "os:system"),
        ("DEFAULTS", '{rules = {mine = {kind = "river", model = "os:system"}}}'),
        ("DEFAULTS__RULES__MINE__MEMBERS", '[{kind = "river", arguments = {model = "os:system"}}]'),
    ],
)
def test_the_environment_cannot_name_code(tmp_path, variable, value):
    (problem,) = problems(tmp_path, environ={f"HB_SET__{variable}": value})
    assert problem.startswith(f"HB_SET__{variable}: the environment cannot name code")


def test_the_command_line_can_name_code(tmp_path):
    rule = '{kind = "callable", function = "tests.unit.learners.rules.functions:by_age"}'
    own = f"learners.left.rules={{mine = {rule}}}"
    assert "code of tests is not allowed" in problems(tmp_path, GOOD, own)[0]
    settings = load_settings(write(tmp_path), [own, 'rules.packages=["tests"]'], environ={})
    assert list(settings.learners["left"].rules) == ["mine"]
    assert "must be a Python package" in problems(tmp_path, GOOD, 'rules.packages=["a b"]')[0]


def test_a_secret_written_by_mistake_is_refused_and_not_repeated(tmp_path):
    security = '[broker.security]\nprotocol = "sasl_ssl"\nusername = "u"\npassword = "hunter2"\n'
    for text, options in [(GOOD + security, []), (GOOD, ["broker.security.password=hunter2"])]:
        message = "\n".join(problems(tmp_path, text, *options))
        assert "a secret is never written into the settings" in message
        assert "hunter2" not in message


def test_relative_paths_start_at_the_settings_file(tmp_path, monkeypatch):
    text = GOOD + '[broker.security]\nprotocol = "ssl"\nca_file = "tls/ca.pem"\n'
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf", text)
    monkeypatch.chdir(tmp_path)
    settings = load_settings("conf/ensemble.toml", environ={})
    assert settings.broker.security.ca_file == tmp_path / "conf/tls/ca.pem"


def all_paths(tree, path=()):
    if path:
        yield path
    for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(below, dict | list):
            yield from all_paths(below, (*path, key))
        else:
            yield (*path, key)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.sampled_from(["", "x", "1", "5s", "wm", "stack", "linear", "committee", "a:1", "hash"]),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["kind", "name", "env", "x"]), st.integers(), max_size=2),
)


def test_defaults_that_are_no_table_are_told(tmp_path):
    tree = tomllib.loads(GOOD)
    tree["defaults"], tree["learners"]["left"] = False, {}
    with pytest.raises(SettingsError) as caught:
        validate(source_of(tomlkit.dumps(tree), tmp_path / "odd.toml"))
    assert [problem.key for problem in caught.value.problems] == [
        "defaults",
        "learners.left.features",
    ]


@settings(max_examples=300)
@given(data=st.data())
def test_no_value_anywhere_breaks_more_than_the_settings(data, tmp_path_factory):
    """Whatever stands at one or two places: settings or problems, never a crash."""
    tree = tomllib.loads(GOOD)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(sorted(all_paths(tree), key=str)))
        value = data.draw(ODD)
        at = tree
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = copy.deepcopy(value)
    text = tomlkit.dumps(tree)
    try:
        validate(source_of(text, tmp_path_factory.getbasetemp() / "odd.toml"))
    except SettingsError as error:
        named = error.problems
    else:
        return
    assert named
    assert all(problem.key and problem.message for problem in named)


def test_another_mode_drops_the_options_of_the_old_one_and_says_so(tmp_path):
    text = proposed_text(
        Proposal("a", ("no", "yes"), "yes", {"l": [{"name": "x", "low": 0, "high": 1}]}, "x")
    )
    file = tmp_path / "ensemble.toml"
    file.write_text(text)
    source = read_source(file, ["ensemble.mode=ah"], environ={})
    assert validate(source).ensemble.options == {}
    (note,) = source.notes
    assert note.startswith("mode ah does not take prior_mean, prior_variance: ")
    assert not read_source(file, ["ensemble.label_ttl=1d"], environ={}).notes
    with pytest.raises(SettingsError, match="mode ah takes"):
        load_settings(file, ["ensemble.mode=ah", "ensemble.options.prior_mean=1"], environ={})


def test_reasons_need_a_rule_that_has_some(tmp_path):
    (problem,) = problems(tmp_path, GOOD, "learners.left.reasons=true")
    assert "learners.left.reasons: no rule of this learner is additive" in problem


def test_encrypted_features_are_not_shown_by_reasons(tmp_path):
    (problem,) = problems(
        tmp_path,
        GOOD,
        'learners.left.rules={lr={kind="logistic"}}',
        "learners.left.reasons=true",
        'privacy.keys.left=[{id="k1", env="KEY"}]',
    )
    assert "privacy.keys.left: its features are encrypted" in problem


def test_state_is_signed_by_agents_that_exist(tmp_path):
    (refusal,) = problems(tmp_path, GOOD, 'privacy.state_keys.nobody=[{id="k1", env="KEY"}]')
    assert "privacy.state_keys.nobody: is neither a learner of these settings nor" in refusal
