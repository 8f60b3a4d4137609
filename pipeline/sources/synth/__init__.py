"""Invented users, videos and plays in the columns of KuaiRec's files.

The product ships no data; this is what the demo and the quick tests run on. Users and videos have latent
tastes that drift, so that there is something to learn, to forget and to learn again, and never all of it:
what a user does with a video is partly chance, as in the real files.
"""
