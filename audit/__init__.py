"""`hb audit`: are the topics, the tables and the counts what the algorithm makes of the inputs?"""

from audit.end_to_end import Report, audit
from audit.findings import Finding, Findings, Kind

__all__ = ["Finding", "Findings", "Kind", "Report", "audit"]
