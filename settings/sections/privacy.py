"""`[privacy]`: what is encrypted, under which keys, and what is too small a crowd to be shown."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from settings.sections.base import Name, Secret, Section, problem


class KeySettings(Secret):
    """A key and where it is kept: 32 random bytes, in base64 or hexadecimal digits."""

    id: Name = Field(description="The key's name. It travels with what the key encrypts.")


def _check_ids(keys: tuple[KeySettings, ...]) -> tuple[KeySettings, ...]:
    if len({key.id for key in keys}) < len(keys):
        raise problem("two keys have the same id")
    return keys


Keys: TypeAlias = Annotated[
    tuple[KeySettings, ...], Field(strict=False), AfterValidator(_check_ids)
]


class PrivacySettings(Section):
    """What protects patients beyond the broker's own access rules."""

    keys: dict[Name, Keys] = Field(
        default_factory=dict,
        description="By local learner, the keys that encrypt its features on `instances.<ll>` and"
        " in its state. The first one encrypts, all of them decrypt. Without keys, features are in"
        " the clear.",
    )
    min_cube: int = Field(
        default=5,
        ge=1,
        description="Cubes with fewer labels than this are not shown one by one in the console:"
        " they may be a single patient's.",
    )
    id_key: Secret | None = Field(
        default=None,
        description="Send a keyed hash (HMAC-SHA256) in place of ids and subjects. All who publish"
        " patients or labels, wait for diagnoses by id or erase patients need the same key; workers"
        " do not. Changing it separates patients from labels that come later.",
    )
    context_keys: Keys = Field(
        default=(), description="The same for the features of contexts, on `contexts`."
    )
    state_keys: dict[Name, Keys] = Field(
        default_factory=dict,
        description="By local learner, or `ensemble`: the keys that sign its state on the broker."
        " The first one signs, all of them are known. With keys, a task refuses what was written"
        " without one.",
    )
