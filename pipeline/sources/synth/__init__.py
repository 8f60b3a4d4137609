"""Invented users, videos and plays in the columns of KuaiRec's files.

The project ships no data; the demo and the quick tests run on these. Users and videos have latent tastes that
drift, so that a learner has to learn, to forget and to learn again. As in the real files, what a user does
with a video is partly random.
"""
