"""The same small job in several stream processors, each a separate program.

    python -m bench.engine.peers.NAME ADDRESS PREFIX FOLDER

The job: read `{"id": …, "x": […]}` from PREFIX + "in", count the records of the id's cell (id
modulo 500) in a table kept in RocksDB with a changelog, and write `{"id": …, "ll": "a", "y": 1,
"n": …}` with the count to PREFIX + "out". Each is written the way its documentation recommends.
"""

CELLS = 500
