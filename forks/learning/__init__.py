"""The two stages of the learner, and the compiled event loop that runs their steps.

Events are whole rows, or numbers of entities with a cache of the entities' kernel factors.
"""
