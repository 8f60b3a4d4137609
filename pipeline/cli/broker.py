"""`forks broker`: a real Apache Kafka for trying things out."""

import typer

app = typer.Typer(help="A real Apache Kafka on this machine, for tests and trying out.", no_args_is_help=True)
