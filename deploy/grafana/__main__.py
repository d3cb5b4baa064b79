"""Writes every dashboard as JSON where Grafana's provisioning finds it, and removes all others."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.ensembles import ensembles
from deploy.grafana.labels import labels
from deploy.grafana.learners import learners
from deploy.grafana.pipeline import pipeline
from deploy.grafana.quality import quality

FOLDER = Path(__file__).parent / "dashboards"


def dashboards() -> dict[str, Dashboard]:
    """Return each dashboard by file, in the folder that Grafana shows it under."""
    return {
        "diagnosis/quality.json": quality(),
        "diagnosis/learners.json": learners(),
        "diagnosis/labels.json": labels(),
        "operation/pipeline.json": pipeline(),
        "operation/ensembles.json": ensembles(),
    }


def rendered() -> dict[str, str]:
    """Return each file's content."""
    return {
        name: json.dumps(dashboard, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
        for name, dashboard in dashboards().items()
    }


def main() -> None:
    """Write them."""
    texts = rendered()
    for file in FOLDER.glob("*/*.json"):
        if str(file.relative_to(FOLDER)) not in texts:
            file.unlink()
    for name, text in texts.items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
