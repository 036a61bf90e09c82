"""The cards, one file for each part of note 002; `CARDS` lists the fields of each."""
