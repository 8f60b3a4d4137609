"""The mathematics of FORKS: one part a module, each beside its equation."""
