"""The records, one per topic. They are frozen, small, and each can be read on its own.

On the wire each is one JSON object that begins with its version `v`. Readers skip fields that they
do not know, so fields may be added without a new version; a change that old readers would
misunderstand needs one. Labels, learners and rules travel as names. What is unknown is absent (or
null): never NaN, never a number that stands for "unknown".
"""

from typing import Annotated

from msgspec import Meta, Struct

from schemas.kinds import (
    VERSION,
    Count,
    Cube,
    Id,
    Millis,
    Name,
    Positive,
    Share,
    Text,
    Value,
)

InstanceId = Annotated[Id, Meta(description="Opaque id of the instance; also the Kafka key.")]
Subject = Annotated[
    Id | None,
    Meta(
        description="Opaque token of the person who is seen; all visits of one person share it."
        " Nothing is learned from it."
    ),
]
At = Annotated[Millis, Meta(description="When it was made, in milliseconds since 1970 (UTC).")]
Row = Annotated[
    tuple[Value, ...] | dict[Name, Value],
    Meta(
        description="The features: an array in the order of the settings, or an object by feature "
        "name. A number for a real feature, the category's name for a categorical one; null, or no "
        "entry in the object, where a value is missing. Encrypted features travel as one text, "
        "which begins with `hb1.`."
    ),
]
Phase = Annotated[
    Count, Meta(description="Phase of the doubling trick, from 1; always 1 without it.")
]
InCube = Annotated[Cube, Meta(description="Cube of the instance in that phase, as decimal text.")]
Votes = Annotated[
    dict[Name, Name] | None,
    Meta(
        description="Under full feedback: the label that every rule gave, by rule name. A rule that"
        " is not named had no opinion."
    ),
]
RuleName = Annotated[Name, Meta(description="The rule that the learner followed.")]
Exploring = Annotated[bool, Meta(description="True if the rule was chosen in order to explore.")]
Trials = Annotated[Count, Meta(description="How often the rule had been tried in the cube.")]
Accuracy = Annotated[Share | None, Meta(description="Estimated accuracy of the rule in the cube.")]
Low = Annotated[Share | None, Meta(description="Lower end of the accuracy's interval.")]
High = Annotated[Share | None, Meta(description="Upper end of the accuracy's interval.")]
Epsilon = Annotated[
    Positive | None,
    Meta(description="Corollary 1: bound on the rule's distance from the best rule in accuracy."),
]
MissingValues = Annotated[
    Count, Meta(description="How many of the learner's features were missing; 0 unless it says.")
]
History = Annotated[
    bool,
    Meta(
        description="True for a past patient (`hb teach`): what is learned is the same, and"
        " errors are counted separately."
    ),
]
Odds = Annotated[tuple[float, ...], Meta(min_length=1)]
LogOdds = Odds | None
REFER = "refer"
"""The answer for patients who are referred, instead of a label."""

_ORDER = (
    "in the order of the settings; with two labels one number is enough, that of the positive one."
)


class Record(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=VERSION):
    """What all records share: an instance id, and the version, which belongs to the class.

    No record can be part of a reference cycle, so the garbage collector need not track them.
    """

    id: InstanceId


class Instance(Record, frozen=True):
    """What one local learner sees of a patient. Topic `instances.<learner>`."""

    x: Row
    at: At
    subject: Subject = None
    history: History = False


class Context(Record, frozen=True):
    """What the ensemble learner sees of a patient, if it uses contexts. Topic `contexts`."""

    x: Row
    at: At
    subject: Subject = None


class Label(Record, frozen=True):
    """The true label of an instance; it may come late, change, or never come. Topic `labels`."""

    label: Annotated[
        Name | None,
        Meta(description="The true label; null withdraws the one that was given before."),
    ]
    at: At
    amends: Annotated[
        bool,
        Meta(
            description="True if this label counts whatever was said before; otherwise a second,"
            " different label is refused."
        ),
    ] = False


class Prediction(Record, frozen=True):
    """A local learner's prediction for an instance, and how sure it is. Topic `predictions`.

    Phase, cube, rule and votes come back with the feedback: counting needs nothing else.
    """

    learner: Annotated[Name, Meta(description="The local learner that made the prediction.")]
    label: Annotated[
        Name | None, Meta(description="The label it predicts; null if it has no opinion.")
    ]
    phase: Phase
    cube: InCube
    rule: RuleName
    exploring: Exploring
    trials: Trials
    at: At
    accuracy: Accuracy = None
    low: Low = None
    high: High = None
    epsilon: Epsilon = None
    votes: Votes = None
    log_odds: Annotated[
        LogOdds, Meta(description=f"Log-odds of each label against the others, {_ORDER}")
    ] = None
    missing: MissingValues = 0
    subject: Subject = None
    history: History = False
    learned: Annotated[
        Count | None,
        Meta(
            description="How many labels the learner had learned when it made the prediction, in"
            " this partition."
        ),
    ] = None


class Opinion(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one local learner contributed to a diagnosis."""

    label: Annotated[
        Name | None, Meta(description="The label it predicted; null if it had no opinion.")
    ]
    rule: RuleName
    exploring: Exploring
    trials: Trials
    accuracy: Accuracy = None
    low: Low = None
    high: High = None
    epsilon: Epsilon = None
    missing: MissingValues = 0


class TrackRecord(Struct, frozen=True, gc=False):
    """How diagnoses like this one turned out: the same label, with about the same chance."""

    cases: Annotated[Count, Meta(description="How many of them have a known label.")]
    right: Annotated[Count, Meta(description="How many of these were right.")]
    low: Annotated[Share, Meta(description="Lower end of the interval of their chance.")]
    high: Annotated[Share, Meta(description="Upper end; it holds 95 times in 100, at all times.")]


class Diagnosis(Record, frozen=True):
    """The ensemble learner's answer, and what it rests on. Topic `diagnoses`."""

    label: Annotated[
        Name, Meta(description="The answer, or the best guess if the answer is to refer.")
    ]
    complete: Annotated[bool, Meta(description="True if no local learner is missing.")]
    missing: Annotated[
        tuple[Name, ...],
        Meta(description="The local learners whose predictions did not come in time."),
    ]
    mode: Annotated[Name, Meta(description="The fusion rule that decided.")]
    weights: Annotated[
        dict[Name, Positive],
        Meta(description="Weight of each learner (or other expert of the fusion rule), by name."),
    ]
    learners: Annotated[
        dict[Name, Opinion], Meta(description="What each learner contributed, by name.")
    ]
    at: At
    context: Annotated[
        Cube | None, Meta(description="Cube of the context, if one came in time.")
    ] = None
    votes: Annotated[
        dict[Name, Name] | None,
        Meta(
            description="The label that each expert of the fusion rule gave, if its experts are not"
            " the learners themselves."
        ),
    ] = None
    basis: Annotated[
        tuple[Count, ...] | None,
        Meta(
            description="What Hedge's weights rested on: labels learned by then, the time that the"
            " learning rate was for, and earlier diagnoses that waited for their labels. The bound"
            " on regret follows from these."
        ),
    ] = None
    answer: Annotated[
        Name | None, Meta(description=f"The label; or `{REFER}`: the patient needs a second look.")
    ] = None
    cannot_exclude: Annotated[
        tuple[Name, ...],
        Meta(description="If referred: the labels that it may be; none if no label fits."),
    ] = ()
    chance: Annotated[
        dict[Name, Share] | None, Meta(description="The calibrated chance of each label.")
    ] = None
    track_record: Annotated[
        TrackRecord | None, Meta(description="How diagnoses like this one turned out.")
    ] = None
    why: Annotated[
        tuple[Name, ...],
        Meta(description="Why it is referred, and what else to know: see docs/confidence.md."),
    ] = ()
    learned: Annotated[
        Count | None, Meta(description="How many labels had been learned when it was made.")
    ] = None
    support: Annotated[
        tuple[Share, ...] | None,
        Meta(
            description="What the fusion rule found for each label, in the order of the settings;"
            " chances are made of it."
        ),
    ] = None
    subject: Subject = None
    history: History = False


class Feedback(Record, frozen=True):
    """The true label, with what the learner needs to count it. Topic `feedback.<learner>`."""

    label: Annotated[Name | None, Meta(description="The true label; null if it was withdrawn.")]
    predicted: Annotated[
        Name | None,
        Meta(description="The label that the learner had predicted; null if it had no opinion."),
    ]
    phase: Phase
    cube: InCube
    rule: RuleName
    at: At
    votes: Votes = None
    others: Annotated[
        LogOdds,
        Meta(
            description="For rules that learn jointly: the other learners' log-odds, added up, "
            + _ORDER
        ),
    ] = None
    log_odds: Annotated[
        LogOdds,
        Meta(
            description="For rules that learn jointly: the log-odds that the prediction carried, "
            + _ORDER
        ),
    ] = None
    amends: Annotated[
        bool,
        Meta(
            description="True for a correction: `was` is taken back, `label` is counted in its"
            " place, and nothing is taught."
        ),
    ] = False
    was: Annotated[
        Name | None,
        Meta(description="For a correction: the label that counted so far; null if it had none."),
    ] = None


class Reasons(Record, frozen=True):
    """How much each feature moved a learner's log-odds. Topic `reasons.<learner>`, if switched on.

    The parts and the rest sum to the log-odds. They tell what the features were, so they are as
    private as the features.
    """

    rule: RuleName
    log_odds: Annotated[
        Odds, Meta(description=f"Log-odds of each label against the others, {_ORDER}")
    ]
    parts: Annotated[
        dict[Name, Odds], Meta(description="What each feature added to them, by feature name.")
    ]
    rest: Annotated[
        Odds,
        Meta(description="What else is in them: a constant, and what no single feature brings."),
    ]
    at: At


class Erasure(Record, frozen=True):
    """A request to erase a patient. Topic `erasures`; the feedback topics pass it on.

    Its `id` is a digest of the instance id, so that erasing a patient writes the id nowhere.
    """

    at: At


class DeadLetter(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=VERSION):
    """A record that could not be used. Topics `deadletter` and `deadletter.<ll>`.

    On the topic the fields travel as headers, `hb-reason`, `hb-topic` and so on, in UTF-8 text; key
    and value are the original bytes. A record that is too large for a dead letter leaves its digest
    in place of its value. The JSON form here is what `hb` prints.
    """

    reason: Annotated[Name, Meta(description="The reason code.")]
    topic: Annotated[Name, Meta(description="The topic it was read from.")]
    partition: Annotated[Count, Meta(description="The partition it was read from.")]
    offset: Annotated[Count, Meta(description="Its offset there.")]
    detail: Annotated[Text, Meta(description="The field and what was expected; never a value.")]
    at: Annotated[Millis, Meta(description="When it was refused, in milliseconds since 1970.")]
    key: Annotated[bytes | None, Meta(description="The original key, base64.")] = None
    value: Annotated[bytes | None, Meta(description="The original value, base64.")] = None
    size: Annotated[
        Count | None, Meta(description="Bytes of a value that was too large to be kept here.")
    ] = None
    sha256: Annotated[
        Text | None, Meta(description="SHA-256 of that value, in hexadecimal digits.")
    ] = None


TOPICS: dict[str, type[Struct]] = {
    "instances.<learner>": Instance,
    "predictions": Prediction,
    "contexts": Context,
    "labels": Label,
    "diagnoses": Diagnosis,
    "feedback.<learner>": Feedback,
    "reasons.<learner>": Reasons,
    "erasures": Erasure,
    "deadletter": DeadLetter,
}
"""Every topic that users see, with its record."""
