"""Grafana's dashboards as code: a module each; `hb dashboards` writes them as JSON."""
