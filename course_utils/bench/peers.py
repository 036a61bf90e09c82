"""The models that take turns, all of one size, each trained and asked in its own usual way.

A peer has `parameters()`, `loss(batch)` and `decode(src, src_lens, steps)`: greedy decoding for
exactly so many steps, so that all do the same work whatever their random weights say.
"""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.bench.floor import Products
from course_utils.bench.rounds import FLOOR, OURS
from course_utils.bench.setting import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, MAX_LEN, V
from course_utils.bench.torch_modules import TorchModules
from course_utils.bench.usual import last_tokens, step
from course_utils.models.modes import evaluating
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import Batch
from course_utils.text.vocab import Vocab
from course_utils.training.decoding import greedy_decode
from course_utils.training.runs.engine import mean_loss

CONFIG = TransformerConfig(
    V, V, D_MODEL, HEADS, D_FF, LAYERS, LAYERS, DROPOUT, inner_dropout=0.0, max_len=MAX_LEN
)
NEVER = -1  # no token is this one: decoding goes on to the last step


class Course:
    """Ours."""

    def __init__(self, device: torch.device):
        self.model = Transformer(CONFIG).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def train(self, batch: Batch) -> None:
        self.model.train()
        step(mean_loss(self.model, batch), self.model, self.optimizer)

    def decode(self, src: Tensor, src_lens: Tensor, steps: int) -> list[list[int]]:
        return greedy_decode(self.model, src, src_lens, bos=Vocab.bos, eos=NEVER, max_len=steps)


class Torch:
    """torch.nn.Transformer; it has no cache, so each step reads the whole beginning again."""

    def __init__(self, device: torch.device):
        self.model = TorchModules(CONFIG).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def train(self, batch: Batch) -> None:
        self.model.train()
        logits = self.model(batch.src, batch.tgt_in)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
        step(loss, self.model, self.optimizer)

    def decode(self, src: Tensor, src_lens: Tensor, steps: int) -> Tensor:
        with evaluating(self.model) as model:
            return model.greedy(src, steps)


class D2l:
    """d2l 0.17.0 and the decoder of its book."""

    def __init__(self, device: torch.device):
        from d2l import torch as d2l

        from course_utils.bench.book_decoder import BookTransformer

        self.d2l = d2l
        self.model = BookTransformer(V, D_MODEL, HEADS, D_FF, LAYERS, DROPOUT).to(device)
        self.loss = d2l.MaskedSoftmaxCELoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)

    def train(self, batch: Batch) -> None:
        self.model.train()
        logits = self.model(batch.src, batch.src_lens, batch.tgt_in)
        tgt_lens = batch.tgt_out.ne(Vocab.pad).sum(1)
        self.optimizer.zero_grad()
        self.loss(logits, batch.tgt_out, tgt_lens).sum().backward()
        self.d2l.grad_clipping(self.model, 1)
        self.optimizer.step()

    def decode(self, src: Tensor, src_lens: Tensor, steps: int) -> Tensor:
        with evaluating(self.model) as model:
            memory = model.encoder(src, src_lens)
            past: list[Tensor | None] = [None] * LAYERS

            def logits_after(tokens: Tensor) -> Tensor:
                nonlocal past
                logits, past = model.decode(tokens[:, -1:], memory, src_lens, past)
                return logits[:, -1]

            return last_tokens(logits_after, len(src), steps, src.device)


class Marian:
    """Hugging Face's MarianMTModel with its own loss and its own `generate`."""

    def __init__(self, device: torch.device):
        from transformers import MarianConfig, MarianMTModel

        self.model = MarianMTModel(MarianConfig(
            vocab_size=V, d_model=D_MODEL, encoder_layers=LAYERS, decoder_layers=LAYERS,
            encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=D_FF,
            decoder_ffn_dim=D_FF, dropout=DROPOUT, max_position_embeddings=MAX_LEN,
            pad_token_id=Vocab.pad, eos_token_id=None, decoder_start_token_id=Vocab.bos,
            forced_eos_token_id=None, scale_embedding=True,
        )).to(device)  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def train(self, batch: Batch) -> None:
        self.model.train()
        labels = batch.tgt_out.masked_fill(batch.tgt_out.eq(Vocab.pad), -100)
        loss = self.model(
            input_ids=batch.src, attention_mask=batch.src.ne(Vocab.pad).long(),
            decoder_input_ids=batch.tgt_in, labels=labels,
        ).loss  # fmt: skip
        step(loss, self.model, self.optimizer)

    def decode(self, src: Tensor, src_lens: Tensor, steps: int) -> Tensor:
        with evaluating(self.model) as model:
            said = model.generate(
                input_ids=src, attention_mask=src.ne(Vocab.pad).long(), num_beams=1,
                do_sample=False, max_new_tokens=steps,
            )  # fmt: skip
        return said[:, 1:]


PEERS: dict[str, Callable[[torch.device], object]] = {
    OURS: Course, "d2l": D2l, "nn.Transformer": Torch, "Marian": Marian, FLOOR: Products,
}  # fmt: skip


def available(names: Iterable[str], device: torch.device) -> tuple[dict[str, object], list[str]]:
    """The models by name, and the names of those whose package is not installed."""
    built, missing = {}, []
    for name in names:
        torch.manual_seed(0)
        try:
            built[name] = PEERS[name](device)
        except ModuleNotFoundError:
            missing.append(name)
    return built, missing
