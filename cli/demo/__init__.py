"""The demonstration behind `hb demo`: the whole system on this machine, with WDBC patients.

`folder.py` holds its folder and settings, `supervise.py` is the process that supervises its workers
and cleans up, `demonstration.py` runs it, `summary.py` reports the results.
"""
