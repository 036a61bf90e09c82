"""Corpora, tokens, vocabularies and padded batches."""
