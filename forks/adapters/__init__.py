"""`forks.Forks` with the interfaces of other libraries, one module for each.

`forks.adapters.river` needs River (the extra ``river``). `forks.adapters.sklearn` has scikit-learn's methods
and works with its tools, but does not need scikit-learn itself.
"""
