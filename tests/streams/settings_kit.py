"""Small but complete settings for tests."""

from typing import Any

from settings.model import Settings


def settings(name: str = "wdbc", broker: Any = "localhost:9092", **worker: Any) -> Settings:
    """Return settings of an ensemble of one learner."""
    rules = {"yes": {"kind": "constant", "label": "malignant"}}
    learner = {"features": [{"name": "x", "low": 0.0, "high": 1.0}], "rules": rules}
    content = {
        "version": 1,
        "name": name,
        "labels": ["benign", "malignant"],
        "positive": "malignant",
        "learners": {"a": learner},
        "broker": {"bootstrap": broker},
        "worker": worker,
    }
    return Settings.model_validate(content)
