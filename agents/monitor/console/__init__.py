"""The live console: one page per worker that shows the whole system, fed by server-sent events.

`server.py` has its addresses, `console.py` the data behind them; `static/` is the page itself.
"""
