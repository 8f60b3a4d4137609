"""Why there is no answer."""

from __future__ import annotations


class ClientError(Exception):
    """Base of the errors of a client."""


class RefusedError(ClientError):
    """The request is wrong: asking again does not help.

    Parameters
    ----------
    status
        The status of HTTP.
    detail
        What is wrong.
    field
        Where it is wrong, such as ``items[3].video_id``; None where it is no field.
    """

    def __init__(self, status: int, detail: str, field: str | None = None) -> None:
        super().__init__(detail if field is None else f"{field}: {detail}")
        self.status = status
        self.detail = detail
        self.field = field


class UnavailableError(ClientError):
    """No follower has answered in time; the message has what happened last."""
