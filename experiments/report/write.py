"""Writes the report: Markdown with images, and one HTML page with interactive figures."""

from collections.abc import Mapping
from pathlib import Path

from experiments.report.html import page
from experiments.report.images import draw
from experiments.report.markdown import document
from experiments.report.result import Result


def write_report(results: Mapping[str, Result], folder: Path) -> list[Path]:
    """Write both forms into the folder and return their paths."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[str]] = {}
    for name, result in results.items():
        files[name] = []
        for k, chart in enumerate(result.charts):
            path = images / f"{name}-{k + 1}.svg"
            draw(chart, path)
            files[name].append(f"images/{path.name}")
    text, html = folder / "README.md", folder / "report.html"
    text.write_text(document(results, files), encoding="utf-8")
    html.write_text(page(results), encoding="utf-8")
    return [text, html]
