"""How a client gets in, and why not: settings, connection, rights."""
