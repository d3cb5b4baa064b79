"""The demonstration behind `hb demo`: the whole system on this machine, with WDBC's patients.

`folder.py` is where it runs and with which settings, `supervise.py` the process that supervises its
workers and cleans up, `demonstration.py` runs it, `summary.py` reports the results.
"""
