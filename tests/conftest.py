"""What all tests share."""

import os
import shutil

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.load_profile("default")


def need_tool(command: str, package: str) -> str:
    """Return the path of `command`; without it skip the test, or fail where tools are demanded."""
    found = shutil.which(command)
    if found is None:
        message = f"{command} is not installed: apt install {package}"
        if os.environ.get("HB_REQUIRE_TOOLS"):
            pytest.fail(message)
        pytest.skip(message)
    return found
