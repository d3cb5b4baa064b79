"""What is needed to run `hb` somewhere: images, Prometheus, Grafana (docs/deploy.md)."""
