"""The MAC of state records: a writer without the key is found out at once.

A state record names its snapshots by their SHA-256, so its MAC covers them too. It also covers the topics'
prefix, the group and the partition: a record of another place is not accepted here. The committed offset's
metadata names one record, and the input offsets in it have to be those of the group. So an older record is
not accepted either, unless the group's offsets are set back too; then the outputs contradict it.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final, Self

from pipeline.config.settings import Checkpoint, Kafka
from pipeline.errors import ConfigError, StateError
from pipeline.records.inputs import Headers
from pipeline.records.names import MAC_HEADER
from pipeline.recovery.state_check import RECOVER, UnusableStateError

MIN_KEY_BYTES: Final = 16
MAX_KEY_BYTES: Final = 2**20
_PURPOSE: Final = b"forks state record, version 1"


class StateSigner:
    """Signs state records with HMAC-SHA256, and checks their MAC.

    Parameters
    ----------
    key
        The secret key.
    prefix
        Prefix of the topics' names.
    group
        Name of the consumer group.

    Examples
    --------
    >>> signer = StateSigner(b"sixteen bytes or more", "", "forks")
    >>> mac = signer.mac(b"{}", partition=0)
    >>> len(mac), mac == signer.mac(b"{}", partition=1)
    (64, False)
    """

    def __init__(self, key: bytes, prefix: str, group: str) -> None:
        self._key = key
        self._scope = (_PURPOSE, prefix.encode(), group.encode())

    @classmethod
    def from_file(cls, name: str, file: Path, kafka: Kafka) -> Self:
        """Return the signer of a key's file, whose bytes are the key.

        Parameters
        ----------
        name
            The setting or option that names the file, for messages.
        file
            The file.
        kafka
            The group whose state records are signed.

        Raises
        ------
        ConfigError
            The file cannot be read, or has too few bytes or too many.
        """
        try:
            with file.open("rb") as content:
                key = content.read(MAX_KEY_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"{name} {file}: cannot be read: {error.strerror}") from error
        if len(key) > MAX_KEY_BYTES:
            raise ConfigError(
                f"{name} {file}: the file has more than {MAX_KEY_BYTES:,} bytes, which is no key"
            )
        if len(key) < MIN_KEY_BYTES:
            raise ConfigError(
                f"{name} {file}: the file has {len(key)} bytes, a key has at least {MIN_KEY_BYTES}. Make one "
                f"with `head -c 32 /dev/urandom > {file}`"
            )
        return cls(key, kafka.prefix, kafka.group)

    def mac(self, value: bytes, partition: int) -> str:
        """Return the MAC of a state record's bytes, in hexadecimal digits."""
        digest = hmac.new(self._key, digestmod="sha256")
        for part in (*self._scope, str(partition).encode(), value):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def headers(self, value: bytes, partition: int) -> list[tuple[str, bytes]]:
        """Return the headers of a state record."""
        return [(MAC_HEADER, self.mac(value, partition).encode())]


def state_signer(checkpoint: Checkpoint, kafka: Kafka) -> StateSigner | None:
    """Return the signer of `checkpoint.key`; None if it is not set.

    Raises
    ------
    ConfigError
        The key cannot be used.
    """
    file = checkpoint.key
    return None if file is None else StateSigner.from_file("checkpoint.key", file, kafka)


def check_mac(
    signer: StateSigner | None, value: bytes, headers: Headers, partition: int, where: object
) -> None:
    """Check the MAC of a state record.

    Parameters
    ----------
    signer
        Has the key; None where records are not signed.
    value
        The record's bytes.
    headers
        The record's headers.
    partition
        The partition's number.
    where
        Topic, partition and offset, for messages.

    Raises
    ------
    StateError
        The MAC is missing, or that of another key or other bytes; or there is one and no key.
    """
    found = [mac or b"" for name, mac in headers if name == MAC_HEADER]
    if signer is None:
        if found:
            raise StateError(
                f"{where}: this state record is signed, but checkpoint.key is not set. Set it to the file of "
                "the workers' key, or stop the workers and write records without a MAC with "
                "`forks checkpoint sign --former-key FILE`"
            )
        return
    if not found:
        raise UnusableStateError(
            f"{where}: this state record has no MAC, but checkpoint.key is set. If the group ran without a "
            "key so far, stop its workers and sign with `forks checkpoint sign`. Else something without the "
            f"key writes to this topic. {RECOVER}"
        )
    if len(found) > 1 or not hmac.compare_digest(found[0], signer.mac(value, partition).encode()):
        raise UnusableStateError(
            f"{where}: the MAC of this state record is not that of checkpoint.key. Either the key is not the "
            "workers' key: use that one, or change keys with `forks checkpoint sign --former-key FILE`. Or "
            f"something without the key writes to this topic. {RECOVER}"
        )
