"""Ask followers for scores: needs the extra `client`."""

from forks.client.answers import Explanation, ItemScore, NearPoint, Scores, ScoreTerm
from forks.client.client import Client
from forks.client.errors import ClientError, RefusedError, UnavailableError

__all__ = [
    "Client",
    "ClientError",
    "Explanation",
    "ItemScore",
    "NearPoint",
    "RefusedError",
    "ScoreTerm",
    "Scores",
    "UnavailableError",
]
