"""`hb audit`: are the topics, the tables and the counts what the algorithm makes of the inputs?"""

from experiments.audit.findings import Finding, Findings, Kind
from experiments.audit.run import Report, audit

__all__ = ["Finding", "Findings", "Kind", "Report", "audit"]
