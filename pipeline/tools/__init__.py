"""Tools that users run by hand: to inspect, audit, report, evaluate and rebuild runs."""
