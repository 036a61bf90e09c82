"""What the cells of chapter 23 only call: a training that goes on, a pipeline's plan, a count."""

import torch


def go_on(parts, updates, loss_of, text):
    """Trains a "model" by its "optimizer" on rows drawn in an "order". Returns all its weights."""
    for _ in range(updates):
        rows = torch.randint(len(text), (32,), generator=parts["order"])
        loss = loss_of(parts["model"], text[rows])
        parts["optimizer"].zero_grad()
        loss.backward()
        parts["optimizer"].step()
    return torch.cat([w.detach().flatten() for w in parts["model"].parameters()])


def restore(parts, saved):
    """Puts a saved state into the parts, and that of the dropout into torch."""
    parts["model"].load_state_dict(saved["model"])
    parts["optimizer"].load_state_dict(saved["optimizer"])
    parts["order"].set_state(saved["order"])
    torch.set_rng_state(saved["dropout"])


def kept_and_passes(blocks, x, run_block):
    """Forward through all blocks by run_block(block, y), and back again.

    Returns the MiB that were kept for the way back, weights apart; how often a block was called;
    and the gradients of all weights, as one vector.
    """
    weights = {w.untyped_storage().data_ptr() for w in blocks.parameters()}
    kept, calls, y = {}, [], x
    hooks = [b.register_forward_pre_hook(lambda module, args: calls.append(1)) for b in blocks]
    blocks.zero_grad()

    def look(t):
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(look, lambda t: t):
        for block in blocks:
            y = run_block(block, y)
    y.square().sum().backward()
    for hook in hooks:
        hook.remove()
    size = sum(size for place, size in kept.items() if place not in weights)
    grads = torch.cat([w.grad.flatten() for w in blocks.parameters()])
    return size / 2**20, len(calls), grads


def pipeline_plan(stages, micro_batches):
    """(stages, ticks): m a forward pass of micro-batch m, -m its backward pass, 0 idle."""
    forward = torch.zeros(stages, stages + micro_batches - 1, dtype=torch.long)
    for stage in range(stages):
        forward[stage, stage : stage + micro_batches] = torch.arange(micro_batches) + 1
    return torch.cat([forward, -forward.flip(1)], dim=1)  # backward: the mirror image
