"""Response headers that handlers set, declared for the OpenAPI document."""

from litestar.datastructures import ResponseHeader

LOCATION = ResponseHeader(
    name="Location", documentation_only=True, required=True, description="The address of what was made."
)
ENTITY_TAG = ResponseHeader(
    name="ETag", documentation_only=True, required=True, description="The version, for `If-Match`."
)
RUN_LOCATION = ResponseHeader(
    name="Location", documentation_only=True, description="Where to follow the run, if one was started."
)
RETRY_AFTER = ResponseHeader(
    name="Retry-After", documentation_only=True, description="Seconds to wait for, while it is not ended."
)
