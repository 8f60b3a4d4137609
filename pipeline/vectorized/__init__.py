"""The fast path: many messages at once, where nothing unusual happens.

The plain code that does the same message by message is the specification: to understand what is decoded,
planned and written, read that, and skip this folder. Tests hold both against each other.

- `batches.planning`, with `merging` and `matching`: `Task` in `pipeline/task/task.py`
- `batches.encoding`, with `columns.column_encoder`: `RecordEncoder._encode_records` in
  `pipeline/worker/encoder.py`
- `columns.decoding`, with `scan` and `input_columns`: `decode` in `pipeline/records/decoding.py`
- `columns.outcomes`: `OutputTypes.raw_outcomes` in `pipeline/records/output_types.py`
- `columns.waiting_texts`, `columns.id_columns` and `columns.narrow_integers`: a dictionary, tuples, a list
"""
