"""The evidence: the paper's tables and figures, single passes over data sets, and the report."""
