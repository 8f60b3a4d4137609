"""The error for a missing package of the extra `broker`."""

from __future__ import annotations

from pipeline.broker.settings import OWN_BROKER_HINT
from pipeline.errors import BrokerError


def missing_package(problem: str) -> BrokerError:
    """Make the error that names the extra to install.

    Parameters
    ----------
    problem : str
        What cannot be done, and the package that is not installed.

    Returns
    -------
    BrokerError
        To be raised from the ImportError.

    Examples
    --------
    >>> str(missing_package("jars cannot be downloaded: pooch is not installed")).split(". ")[1]
    'Install it with: pip install "forks-stream[broker]"'
    """
    return BrokerError(f'{problem}. Install it with: pip install "forks-stream[broker]". {OWN_BROKER_HINT}')
