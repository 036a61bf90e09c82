"""Natural changes of chapter 00: what a learner may try, each of which has to end well."""

CHANGES = [
    ("c00-explore", "The black cat is sleeping.", "My sister doesn't like cold water."),
    ("c00-explore", "The black cat is sleeping.", "cat"),
    ("c00-explore", "The black cat is sleeping.", "你好"),
    ("c00-explore", "The black cat is sleeping.", ""),
    ("c00-explore", "The black cat is sleeping.", "The cat. " * 60),
    ("c00-guess", "...", "17"),
    ("c00-guess", "...", "'about 15'"),
    ("c00-average", "0.7, 0.2, 0.1", "0.9, 0.2, 0.1"),
    ("c00-average", "0.7, 0.2, 0.1", "1, 0, 0"),
    ("c00-average", "0.7, 0.2, 0.1", "0.5, 0.5"),
    ("c00-average", "0.7, 0.2, 0.1", "2.0, -1.0, 0.0"),
    ("c00-average", "0.7, 0.2, 0.1", ""),
    ("c00-average", "10.0, 20.0, 30.0", "10.0, 20.0, 30.0, 40.0"),
    ("c00-average", "10.0, 20.0, 30.0", "-5, 5, 1000"),
    ("c00-wrong", "values.mean()", "values.median()"),
    ("c00-wrong", "values.mean().expand(len(weights))", "values.sum()"),
    ("c00-009", "progress()", "progress(2)"),
    ("c00-003", "brief=True", ""),
]
