"""What is learned from a CSV file is what the scalings learn from the whole column."""

import csv
import stat
from itertools import pairwise

import numpy as np
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.local.scaling import MinMax, Quantile, ZLogistic
from settings.errors import InputError, SettingsError
from settings.loading import load_settings
from settings.proposing import fitting
from settings.proposing.csv_file import Chunk, CsvFile
from settings.proposing.fitting import MomentFit, QuantileFit, RangeFit, rounded
from settings.proposing.refit import refit
from tests.settings_files import write

SETTINGS = """\
version = 1
name = "toy"
labels = ["no", "yes"]  # two
positive = "yes"
defaults.rules.always = {kind = "constant", label = "yes"}

[learners.left]
# what left sees
features = [
  {name = "age"},   # in years
    # kilograms
  { name = "mass", scale = "zlog", mean = 1, std = 2 },
]

[[learners.right.features]]
name = "sex"  # as told
categories = ["x"]  # known before

[ensemble.context]
features = [{name = "age", scale = "quantile"}]
"""
DATA = "id,age,mass,sex\na,20,70,m\nb,40,,f\n\nc,60,90, x \n"


def chunks_of(values, cuts, tmp_path):
    texts = [repr(value) for value in values]
    edges = [0, *sorted(cuts), len(texts)]
    return [Chunk(tmp_path, range(a, b), {"x": texts[a:b]}) for a, b in pairwise(edges)]


columns = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_a_constant_column_in_chunks_has_the_spread_of_a_constant_column():
    fit = MomentFit()
    for chunk in chunks_of([699050.7358849745] * 4, [1], "x.csv"):
        fit.take(chunk, "x")
    assert fit.learned("x")["std"] == 1.0


@given(columns, st.data())
def test_chunks_do_not_matter(values, data):
    cuts = data.draw(st.lists(st.integers(0, len(values)), max_size=3))
    fits = RangeFit(), MomentFit(), QuantileFit()
    for chunk in chunks_of(values, cuts, "x.csv"):
        for fit in fits:
            fit.take(chunk, "x")
    ranges, moments, knots = (fit.learned("x") for fit in fits)
    assert MinMax(**ranges) == MinMax.fit(values)
    whole = ZLogistic.fit(values)
    spread = np.std(values) or 1.0  # what a constant column is given
    assert moments["mean"] == pytest.approx(whole.mean, abs=1e-5 * spread + 1e-6)
    if spread > 1e-6 * max(map(abs, values)):  # below it, both are rounding noise
        assert moments["std"] == pytest.approx(whole.std, rel=1e-5)
    exact = Quantile.fit(values).knots
    np.testing.assert_allclose(knots["knots"], exact, rtol=1e-9, atol=1e-5 * spread)
    assert sorted(knots["knots"]) == knots["knots"]


def test_long_columns_are_sampled_well(monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 10_000)
    values = np.random.default_rng(3).lognormal(size=60_000)
    fit = QuantileFit()
    for chunk in chunks_of(values.tolist(), range(5_000, 60_000, 5_000), "x.csv"):
        fit.take(chunk, "x")
        assert len(fit.values) <= 20_000
    knots = fit.learned("x")["knots"]
    shares = np.searchsorted(np.sort(values), knots[1:-1]) / len(values)
    # Three standard errors of a share of 1/2 in 10,000 draws.
    np.testing.assert_allclose(shares, np.arange(1, 32) / 32, atol=0.015)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_rounding_is_far_below_the_spread(value, spread):
    assert abs(rounded(value, spread) - value) <= 1e-6 * spread + 1e-6 * abs(value) * 2**-30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n", "the file is empty"),
        ("id,age,mass,sex\n", "has a header and no rows"),
        ("id,age\n1,2\n", "no column 'mass', 'sex'; the file has: id, age"),
        ("age,age,mass,sex\n", "names 'age' twice"),
        ("age,mass,sex\n1,2,f\n1,secret,f\n", "data.csv:3: column 'mass': not a finite number"),
        ("age,mass,sex\n1,inf,f\n", "data.csv:2: column 'mass': not a finite number"),
        ("age,mass,sex\n1,2,f\n1,2\n", "data.csv:3: 2 fields, but the header has 3"),
        ("age,mass,sex\n,2,f\n", "column 'age' is empty"),
        ('"age,mass,sex\n1,2,f\n', "no column 'age', 'mass', 'sex'"),
    ],
)
def test_bad_data_leaves_the_settings_alone(tmp_path, text, message):
    file = write(tmp_path, SETTINGS)
    data = tmp_path / "data.csv"
    data.write_text(text)
    with pytest.raises(InputError) as raised:
        refit(file, CsvFile(data))
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)
    assert file.read_text() == SETTINGS


def test_data_that_is_no_text(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"age\n1\n\xe9\n")
    with pytest.raises(InputError, match=r"not UTF-8 text: .*iconv -f LATIN1 -t UTF-8"):
        list(CsvFile(tmp_path / "latin.csv").chunks(["age"]))
    with pytest.raises(InputError, match="there is no such file"):
        CsvFile(tmp_path / "none.csv")
    with pytest.raises(InputError, match="expected a CSV file; JSON lines are for"):
        CsvFile(tmp_path / "patients.jsonl")
    with pytest.raises(InputError, match="Is a directory"):
        CsvFile(tmp_path)


def test_too_many_categories(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_CATEGORIES", 3)
    (tmp_path / "data.csv").write_text("age,mass,sex\n" + "".join(f"1,2,{s}\n" for s in "abcde"))
    with pytest.raises(InputError, match="too many to be categories"):
        refit(write(tmp_path, SETTINGS), CsvFile(tmp_path / "data.csv"))


def test_fit_writes_numbers_and_keeps_the_rest(tmp_path):
    file = write(tmp_path, SETTINGS)
    (tmp_path / "data.csv").write_text(DATA)
    changes = refit(file, CsvFile(tmp_path / "data.csv"))
    expected = (
        SETTINGS.replace('{name = "age"},   #', '{name = "age", low = 20.0, high = 60.0},   #')
        .replace(
            '{ name = "mass", scale = "zlog", mean = 1, std = 2 }',
            '{name = "mass", scale = "zlog", mean = 80.0, std = 10.0}',
        )
        .replace('["x"]  #', '["x", "f", "m"]  #')
    )
    knots = np.linspace(20, 40, 17).tolist() + np.linspace(40, 60, 17).tolist()[1:]
    listed = tomlkit.item(knots).as_string()
    expected = expected.replace('"quantile"}', f'"quantile", knots = {listed}}}')
    assert file.read_text() == expected
    assert [(c.owner, c.feature, c.changed, c.rows, c.blanks) for c in changes] == [
        ("left", "age", True, 3, 0),
        ("left", "mass", True, 3, 1),
        ("right", "sex", True, 3, 0),
        ("context", "age", True, 3, 0),
    ]
    assert load_settings(file, environ={}).learners["right"].features[0].categories == (
        "x",
        "f",
        "m",
    )
    again = refit(file, CsvFile(tmp_path / "data.csv"))
    assert not any(change.changed for change in again)
    assert file.read_text() == expected


def test_another_scale_replaces_the_old_numbers(tmp_path):
    file = write(tmp_path, SETTINGS)
    (tmp_path / "data.csv").write_text(DATA)
    refit(file, CsvFile(tmp_path / "data.csv"), "zlog")
    refit(file, CsvFile(tmp_path / "data.csv"), "minmax")
    left = load_settings(file, environ={}).learners["left"].features
    assert [(f.scale, f.low, f.high, f.mean) for f in left] == [
        ("minmax", 20, 60, None),
        ("minmax", 70, 90, None),
    ]


def test_a_dry_run_writes_nothing(tmp_path):
    file = write(tmp_path, SETTINGS)
    (tmp_path / "data.csv").write_text(DATA)
    assert refit(file, CsvFile(tmp_path / "data.csv"), write=False)[0].changed
    assert file.read_text() == SETTINGS


def test_the_file_keeps_its_line_ends_its_rights_and_its_link(tmp_path):
    real = tmp_path / "real.toml"
    real.write_bytes(SETTINGS.replace("\n", "\r\n").encode())
    real.chmod(0o640)
    link = tmp_path / "ensemble.toml"
    link.symlink_to(real)
    (tmp_path / "data.csv").write_text(DATA)
    refit(link, CsvFile(tmp_path / "data.csv"))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    content = real.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n") > 10
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "data.csv",
        "ensemble.toml",
        "real.toml",
    ]


def test_a_settings_file_with_other_problems_is_not_touched(tmp_path):
    text = SETTINGS.replace('name = "toy"', 'name = "TOY"')
    file = write(tmp_path, text)
    (tmp_path / "data.csv").write_text(DATA)
    with pytest.raises(SettingsError, match="name: must be a name"):
        refit(file, CsvFile(tmp_path / "data.csv"))
    assert file.read_text() == text


@settings(max_examples=30)
@given(
    rows=st.lists(
        st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), st.integers()),
        min_size=1,
    ),
    delimiter=st.sampled_from(",;\t|"),
)
def test_any_csv_reads_back(rows, delimiter, tmp_path_factory):
    file = tmp_path_factory.mktemp("csv") / "any.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["note", "count"])
        writer.writerows(rows)
    (chunk,) = CsvFile(file).chunks(["count", "note"])
    assert chunk.columns == {
        "note": [note for note, _ in rows],
        "count": [str(count) for _, count in rows],
    }
