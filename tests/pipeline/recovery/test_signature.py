"""A state record is signed for its pipeline and its partition; where there is a key, it needs a MAC."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config.settings import Checkpoint, Kafka
from pipeline.errors import ConfigError, StateError
from pipeline.records.inputs import Headers
from pipeline.records.names import MAC_HEADER
from pipeline.recovery.signature import StateSigner, check_mac, state_signer

KEY = b"sixteen bytes or"
VALUE = b'{"version":3}'
SIGNER = StateSigner(KEY, "shop-", "forks")


def check(signer: StateSigner | None, value: bytes, headers: Headers, partition: int = 0) -> None:
    check_mac(signer, value, headers, partition, "checkpoints, partition 0, offset 9")


def test_a_record_that_the_key_has_signed_is_accepted() -> None:
    check(SIGNER, VALUE, SIGNER.headers(VALUE, 0))
    check(None, VALUE, [("other", b"header")])


@pytest.mark.parametrize(
    "other",
    [
        StateSigner(KEY[::-1], "shop-", "forks"),
        StateSigner(KEY, "shop", "-forks"),
        StateSigner(KEY, "", "shop-forks"),
        StateSigner(KEY, "shop-", "others"),
    ],
)
def test_the_mac_of_another_key_or_another_pipeline_is_refused(other: StateSigner) -> None:
    with pytest.raises(StateError, match=r"offset 9: the MAC of this .* is not that of checkpoint.key"):
        check(SIGNER, VALUE, other.headers(VALUE, 0))


def test_a_record_that_was_changed_or_moved_to_another_partition_is_refused() -> None:
    headers = SIGNER.headers(VALUE, 0)
    for value, partition in ((VALUE + b" ", 0), (VALUE, 1), (b"", 0)):
        with pytest.raises(StateError, match="is not that of checkpoint"):
            check(SIGNER, value, headers, partition)
    for wrong in ([*headers, *headers], [(MAC_HEADER, None)], [(MAC_HEADER, "é".encode())]):
        with pytest.raises(StateError, match="is not that of checkpoint"):
            check(SIGNER, VALUE, wrong)


def test_a_mac_without_a_key_and_a_key_without_a_mac_are_refused_with_a_remedy() -> None:
    with pytest.raises(StateError, match=r"signed, but checkpoint.key is not set.*--former-key FILE"):
        check(None, VALUE, SIGNER.headers(VALUE, 0))
    with pytest.raises(StateError, match=r"has no MAC, but checkpoint.key is set.*forks checkpoint sign"):
        check(SIGNER, VALUE, [])


def test_a_key_that_cannot_be_used_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    def signer(file: Path) -> StateSigner | None:
        return state_signer(Checkpoint(key=file), Kafka(prefix="shop-"))

    file = tmp_path / "key"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        signer(file)
    file.write_bytes(KEY[:-1])
    with pytest.raises(ConfigError, match="has 15 bytes, a key has at least 16") as error:
        signer(file)
    assert KEY[:-1].decode() not in str(error.value)
    with pytest.raises(ConfigError, match="more than 1,048,576 bytes"):
        signer(Path("/dev/zero"))
    file.write_bytes(KEY)
    found = signer(file)
    assert found is not None
    assert found.mac(VALUE, 0) == SIGNER.mac(VALUE, 0)
    assert state_signer(Checkpoint(), Kafka()) is None
