"""The table of roles and operations in docs follows from the rights; a broker enforces the same."""

from pipeline_kit import settings

from tests.role_table import NAME, OVERRIDES, documented, granted, rendered


def test_docs_show_what_each_role_may_do(tmp_path):
    config = settings(tmp_path, "localhost:9", NAME, *OVERRIDES)
    wanted = rendered(granted(config), config)
    assert documented() == wanted, "\n".join(["docs/broker.md should have:", *wanted])
