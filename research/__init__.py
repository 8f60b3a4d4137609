"""Experiments of the FORKS papers, run from a checkout; the distributions do not contain them.

``python -m research table2 --data FOLDER`` runs one and shows the printed results beside the measured ones;
``python -m research --help`` lists all. The folders, from the ground up:

- `research.rivals`: learners of the papers that no configuration of the component can name.
- `research.variants`: learners altered to explain printed results.
- `research.harness`: streams, trials, how trials run, the store of results, and rows of a table.
- `research.experiments`: the tables and figures as lists of trials.
- `research.findings`: claims of the papers, decided by the rows.
- `research.reproduce`: an experiment on a user's data, written as tables, figures and a page.
"""
