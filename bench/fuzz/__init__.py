"""Whatever bytes come in, every decoder takes or refuses them: `hb fuzz`, and the suite."""
