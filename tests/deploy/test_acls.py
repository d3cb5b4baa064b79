"""The list of access rules beside the example ensemble is that of its settings."""

from settings.loading import load_settings
from streams.kafka.rights import as_command, roles
from tests.deploy.files import DEPLOY


def test_the_list_is_up_to_date():
    wanted = []
    for role in roles(load_settings(DEPLOY / "ensemble.toml", environ={})):
        wanted += [f"# {role.name}", *(as_command(role, right) for right in sorted(role.rights))]
    listed = (DEPLOY / "acls" / "wdbc.txt").read_text().splitlines()
    assert listed == wanted, "hb acls print --commands --settings deploy/ensemble.toml"
