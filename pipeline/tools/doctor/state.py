"""Check that workers can go on from what a group has committed."""

from __future__ import annotations

from pipeline.config.settings import Config
from pipeline.errors import TopicError
from pipeline.model.factory import ModelFactory
from pipeline.recovery.libraries import differing_libraries
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.tools.checkpoint.group import Group
from pipeline.tools.doctor.check import Check


def check_state(config: Config) -> Check:
    """Check the state records of all partitions, as a worker of this version does before it restores.

    Parameters
    ----------
    config
        The whole configuration.

    Returns
    -------
    Check
        A warning if they were written with another arithmetic, or if other versions compiled it.

    Raises
    ------
    StateError
        A worker would refuse one of them: it is of another version, of other settings, damaged or lost.
    """
    name = "state"
    try:
        group = Group(config)
    except TopicError as error:
        return Check(name, "skipped", str(error))
    with group:
        found = [group.committed_state(partition) for partition in range(group.partitions)]
        states = [each.state for each in found if each is not None]
        if not states:
            return Check(name, "skipped", "the group has committed nothing yet")
        settings = ModelFactory(config).settings(group.partitions)
    for state in states:
        refuse_other_settings(state, settings)
    differing = {
        differing_libraries(state.libraries.versions if state.libraries else {})
        for state in states
        if state.predictions
    }
    if texts := sorted(differing - {""}):
        remedy = "none is needed to go on; docs/upgrading.md says what audits then derive again"
        return Check(name, "warning", f"it was written with {'; '.join(texts)}", remedy)
    return Check(name, "ok", f"workers can go on from it in {len(states)} partitions")
