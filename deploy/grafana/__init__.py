"""Grafana's dashboards as code, one module each; `hb dashboards` writes them as JSON."""
