"""Whole columns at once: compiled code for what most batches hold.

The plain code that does the same record by record is the specification: to understand what is written, read
that, and skip this folder. Tests hold both against each other. The specification of `column_encoder` and of
`waiting_texts` is `RecordEncoder._encode_records` in `pipeline/worker/encoder.py`, that of `decoding` is
`decode` in `pipeline/records/decoding.py`, and that of `outcomes` is `OutputTypes.raw_outcomes`.
"""
