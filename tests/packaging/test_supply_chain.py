"""The bill of materials names everything that is locked; known vulnerabilities fail the check."""

import http.server
import json
import threading

from cli.supply_chain import AUDITED, bill, main, pins
from streams.broker.jars import licences, locks


def test_the_bill_names_every_locked_package_and_jar_with_its_hash():
    contents = bill()
    assert contents == bill()
    assert (contents["bomFormat"], contents["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["purl"]: part for part in contents["components"]}
    jars = {jar for pinned in locks() for jar in pinned.jars}
    assert len(parts) == len(contents["components"]) == len(pins()) + len(jars)
    assert f"pkg:pypi/aiokafka@{pins()['aiokafka']}" in parts
    for purl, part in parts.items():
        assert part["properties"] if purl.startswith("pkg:pypi/") else part["hashes"]
    json.dumps(contents)


def test_the_bill_names_the_licences_of_every_jar_and_which_kafka_needs_it():
    parts = {part["purl"]: part for part in bill()["components"]}
    for pinned in locks():
        for jar in pinned.jars:
            part = parts[f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"]
            named = [entry["license"]["name"] for entry in part["licenses"]]
            assert named == licences()[jar.coordinate] != []
            assert {"name": "hb:kafka", "value": pinned.kafka} in part["properties"]


def test_what_is_looked_up_is_all_that_is_locked():
    """But for the lowest versions, which only a test installs."""
    assert pins([AUDITED]).items() >= pins(("run", "worker", "dev", "build")).items()


class Database(http.server.BaseHTTPRequestHandler):
    """Answers as OSV does, and knows a vulnerability of one package."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "999"}]}]
        package = {"name": "aiokafka", "ecosystem": "PyPI"}
        advisory = {"id": "CVE-1", "affected": [{"package": package, "ranges": ranges}]}
        answer = {"vulns": [advisory]} if asked["package"]["name"] == "aiokafka" else {}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


def test_a_known_vulnerability_is_named_and_fails_the_check(capsys):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Database) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            assert main(["--vulnerability-service=osv", f"--osv-url={url}"]) == 1
        finally:
            server.shutdown()
            thread.join()
    assert capsys.readouterr().err == f"aiokafka {pins()['aiokafka']}: CVE-1, mended in 999\n"


def test_a_database_that_cannot_be_asked_is_said_and_fails_nothing(capsys):
    assert main(["--vulnerability-service=osv", "--osv-url=http://127.0.0.1:9"]) == 0
    output = capsys.readouterr().err
    assert (
        output
        == "known vulnerabilities of any package were not looked up: the database does not say\n"
    )
