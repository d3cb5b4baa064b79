"""Which release of Kafka a broker is of: no request asks for it, but its features tell.

Every release since 3.4 can keep the cluster's metadata in a form of its own, whose number a broker
gives when it is asked for its versions: ApiVersions, version 3, which aiokafka does not have.
"""

from bisect import bisect_right
from io import BytesIO
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

_FEATURE = "metadata.version"
_SUPPORTED = 0
"""The tag of the features that a broker's program can do, whether they are switched on or not."""
_FIRST = {8: "3.4", 9: "3.5", 12: "3.6", 15: "3.7", 20: "3.8", 21: "3.9", 22: "4.0", 26: "4.1",
          28: "4.2", 30: "4.3"}  # fmt: skip
"""The first form of metadata that each release can keep."""
_NONE = b"\1"
_TEXT = CompactString("utf-8")
_FEATURES = CompactArray(
    ("name", _TEXT), ("lowest", Int16), ("highest", Int16), ("tags", TaggedFields)
)


class _VersionsResponse(Response):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "versions",
            CompactArray(
                ("key", Int16), ("lowest", Int16), ("highest", Int16), ("tags", TaggedFields)
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _VersionsQuestion(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 18
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _VersionsResponse
    SCHEMA = Schema(("name", _TEXT), ("version", _TEXT), ("tags", TaggedFields))

    def parse_response_header(self, read_buffer: Any) -> Any:
        """Read a header without tags: old clients could not read any other to this question."""
        return ResponseHeader_v0.decode(read_buffer)


class _VersionsRequest(Request[_VersionsQuestion]):  # type: ignore[misc]  # aiokafka is untyped
    API_KEY = 18

    def build(self, request_struct_class: type[_VersionsQuestion]) -> _VersionsQuestion:
        return request_struct_class("hb", "1", {})


async def broker_release(admin: Any) -> str | None:
    """Return the release of the broker that answers, such as `4.1`; None if it cannot be told."""
    answer = await admin._send_request(_VersionsRequest())
    features = _FEATURES.decode(BytesIO(answer.tags.get(_SUPPORTED, _NONE))) or ()
    forms = [highest for name, _, highest, _ in features if name == _FEATURE]
    return release_of(max(forms, default=0))


def release_of(highest: int) -> str | None:
    """Return the release that can keep metadata up to some form.

    >>> release_of(21), release_of(27), release_of(1)
    ('3.9', '4.1', None)
    """
    known = bisect_right(list(_FIRST), highest)
    return list(_FIRST.values())[known - 1] if known else None
