"""Settings for tests of what agents and clients are made of."""

from settings.model import Settings

SETTINGS = Settings.model_validate(
    {
        "version": 1,
        "name": "toy",
        "labels": ["no", "yes"],
        "positive": "yes",
        "defaults": {"rules": {"always": {"kind": "constant", "label": "yes"}}},
        "learners": {
            "left": {"features": [{"name": "age", "low": 0, "high": 100}]},
            "right": {
                "features": [
                    {"name": "age", "low": 0, "high": 50},
                    {"name": "sex", "categories": ["f", "m"]},
                ]
            },
        },
        "ensemble": {
            "mode": "ch",
            "context": {"features": [{"name": "dose", "low": 0, "high": 1}]},
        },
    }
)
