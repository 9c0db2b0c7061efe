"""Headers of an answer that its handler sets, for the document."""

from litestar.datastructures import ResponseHeader

LOCATION = ResponseHeader(
    name="Location", documentation_only=True, required=True, description="The address of what was made."
)
ENTITY_TAG = ResponseHeader(
    name="ETag", documentation_only=True, required=True, description="The version, for `If-Match`."
)
