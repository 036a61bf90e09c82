"""Natural changes of chapter 14: what a learner may try, each of which has to end well."""

CHANGES = [
    ("c14-task", "draw(labelled(to_read), 64)", "draw(labelled(to_read), 8)"),
    ("c14-base", "500, size=64", "20, size=64"),
    ("c14-small", "[[1.0, 0.0, -1.0]]", "[[5.0, 2.0, 3.0]]"),
    ("c14-small", "[[1.0], [0.0], [2.0], [0.0]]", "[[0.0], [0.0], [0.0], [0.0]]"),
    ("c14-small", "[[2.0, 1.0, 0.0]]", "[[2.0, 1.0, 0.0], [5.0, 5.0, 5.0]]"),
    ("c14-lora", "torch.zeros(base.out_features, rank)", "torch.randn(base.out_features, rank)"),
    ("c14-insert", '("W_q", "W_v")', '("W_q", "W_k", "W_v", "W_o")'),
    ("c14-guess1", "...", '"both"'),
    ("c14-more", "(64, 400)", "(8, 200)"),
    ("c14-read", '"open the door"', '"he is tired"'),
    ("c14-read", '"open the door"', '"my robot sings"'),
    ("c14-adapter", "nn.init.zeros_(self.up.bias)", "pass"),
    ("c14-adapter-small", "[[1.0, 1.0, 0.0]]", "[[-1.0, 0.0, 2.0]]"),
    ("c14-prefix", "n, m, d = 4, 3, 8", "n, m, d = 4, 0, 8"),
    ("c14-prefix", "n, m, d = 4, 3, 8", "n, m, d = 1, 20, 2"),
    ("c14-prompt", "length=8", "length=1"),
    ("c14-spread", '("prefix m=8", "head only")', '("adapters", "full")'),
    ("c14-four-bits", "keepdim=True) / 7", "keepdim=True) / 127"),
    ("c14-pair", '("full", "LoRA q, v, r=8")', '("head only", "adapters")'),
    ("c14-memory", '("full", "LoRA q, v, r=8")', '("adapters", "head only")'),
    ("c14-guess2", "...", "0.01"),
    ("c14-work", "batches(few, 1)", "batches(test, 1, size=4)"),
    ("c14-proof-memory", "(32, 64)), torch.full((32,), 64)", "(32, 4)), torch.full((32,), 4)"),
    ("c14-guess3", "...", "0.5"),
    ("c14-knob", "1e-3, 45, 0", "1e-1, 45, 0"),
    ("c14-knob", '"LoRA q, v, r=8", 1e-3, 45, 0', '"head only", 1e-2, 10, 3'),
]  # fmt: skip

SHORT = [
    ("c14-base", "500, size=64", "40, size=64"),
    ("c14-more", "200), lambda", "20), lambda"),
    ("c14-adapt", "updates=45", "updates=4"),
    ("c14-race", "range(5)", "range(2)"),
    ("c14-knob", "45, 0", "4, 0"),
]
