"""Sign the committed state records of a group with another key, or with none."""

from __future__ import annotations

from pathlib import Path

from pipeline.recovery.signature import StateSigner
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.checkpoint.installing import NewCheckpoint, write_checkpoints


def sign(group: Group, former_key: Path | None) -> list[int]:
    """Write the committed state record of each partition again, signed with `checkpoint.key`.

    Parameters
    ----------
    group
        Group without members.
    former_key
        File of the key that the present records are signed with; None if they have no MAC.

    Returns
    -------
    list of int
        Partitions whose state record was written; nothing was committed for the others yet.

    Raises
    ------
    ConfigError
        A key cannot be used.
    StateError
        The group has members, or a present record cannot be used. Nothing has changed then.
    """
    group.refuse_members()
    former = (
        None if former_key is None else StateSigner.from_file("--former-key", former_key, group.config.kafka)
    )
    found = [group.committed_state(partition, former) for partition in range(group.partitions)]
    present = [each for each in found if each is not None]

    def unchanged() -> bool:
        return all(group.committed_state(each.state.partition, former) == each for each in present)

    if present:
        write_checkpoints(group, [NewCheckpoint(each.state, None) for each in present], unchanged)
    return [each.state.partition for each in present]
