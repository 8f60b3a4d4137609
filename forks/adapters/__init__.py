"""`forks.Forks` in the habits of other libraries, one module for each.

`forks.adapters.river` needs River (the extra ``river``). `forks.adapters.sklearn` needs nothing: it has
scikit-learn's methods, and scikit-learn's own tools take it where they are there.
"""
