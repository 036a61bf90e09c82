"""A training of `train`: updates, validations and checkpoints until the budget is used up."""

import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from course_utils.models.modes import evaluating
from course_utils.models.transformer import Transformer
from course_utils.text.batches import Batch, Example, collate
from course_utils.text.pairs import Pair
from course_utils.text.subwords import Subwords
from course_utils.text.vocab import Vocab
from course_utils.training.metrics import Score, measure_for, quality
from course_utils.training.runs import checkpoint
from course_utils.training.runs.data import batches_of, encode, fitting_budget, positions
from course_utils.training.runs.folder import Best, read_best, weights_of, write_weights
from course_utils.training.runs.lines import translate_lines
from course_utils.training.runs.processes import (
    data_parallel,
    largest_of_all,
    rank,
    share,
    world_size,
)
from course_utils.training.runs.progress_line import Report
from course_utils.training.runs.refusals import Refused
from course_utils.training.runs.settings import Settings
from course_utils.training.runs.stopping import StopRequest
from course_utils.training.runs.training_log import Row, read_log, write_log
from course_utils.training.schedules import warmup_then_decay_after
from course_utils.training.steps import update
from course_utils.training.translation import Translator

CLIP = 1.0  # the largest norm of the gradient
SAVE_EVERY = 300.0  # seconds between checkpoints, where validations are further apart


def _update_average(averages, weights, updates) -> None:
    """A moving average that forgets fast at first and remembers about 1,000 updates later on."""
    decay = min(0.999, (1 + int(updates)) / (10 + int(updates)))
    get_ema_multi_avg_fn(decay)(averages, weights, updates)


def mean_loss(model: nn.Module, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
    """Mean loss over the real tokens, the only ones that reach the output layer."""
    real = batch.tgt_out.ne(Vocab.pad)  # (B, Tt)
    logits = model(batch.src, batch.src_lens, batch.tgt_in, real)  # (real tokens, V)
    return F.cross_entropy(logits, batch.tgt_out[real], label_smoothing=label_smoothing)


class Training:
    """A model, what it learns from, and how far it has come.

    The same settings give the same weights on the same CPU, with `--epochs` also when the run is
    stopped and resumed: batches and dropout follow from the seed and the update's number. CUDA adds
    some gradients in an order of its own, so that two runs there differ by rounding.

    Args:
        folder: where the best weights and the checkpoint go.
        digest: of the corpus, kept in the checkpoint.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        vocabulary: Subwords,
        examples: Sequence[Example],
        validation: Sequence[Pair],
        digest: str,
        device: torch.device,
    ):
        self.folder, self.settings, self.vocabulary = folder, settings, vocabulary
        self.examples, self.validation, self.digest = examples, validation, digest
        self.device = device
        torch.manual_seed(settings.seed)
        config = settings.model_config(len(vocabulary), positions(examples))
        self.model = Transformer(config).to(device)
        self.average = AveragedModel(self.model, multi_avg_fn=_update_average)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=device.type != "mps"
        )
        self.budget = fitting_budget(examples) if settings.tokens is None else settings.tokens
        self.step, self.validated, self.seconds = 0, 0, 0.0
        self._epoch, self._batches = -1, []
        self.steps_per_epoch = len(self._batch_list(0))
        self.best, self.log = read_best(folder), []

    def resume(self, fields: dict) -> None:
        """Go back to a checkpoint."""
        self.step, self.validated = fields["step"], fields["validated"]
        self.seconds = fields["seconds"]
        self.log = [row for row in read_log(self.folder) if row.update <= self.step]
        average = self.average.module
        checkpoint.load(self.folder, self.model, average, self.optimizer, self.step)
        self.average.n_averaged.fill_(self.step)

    def progress(self) -> float:
        """Share of the budget that is used up, from 0; at least one update belongs to it."""
        if self.step == 0:
            return 0.0
        if self.settings.minutes is not None:
            return self.seconds / (60 * self.settings.minutes)
        return self.step / (self.settings.epochs * self.steps_per_epoch)

    def out_of_patience(self) -> bool:
        """Whether as many validations as `--patience` says have brought nothing better."""
        patience = self.settings.patience
        idle = self.log[-patience:] if patience and self.best else []
        return len(idle) == patience and all(row.update > self.best.step for row in idle)

    def run(self) -> int:
        """Train to the end, or until a signal comes.

        Returns:
            0, or the number of the signal.

        Raises:
            Refused: the loss is no longer finite.
        """
        model = data_parallel(self.model, self.device)
        before, began, saved = self.seconds, time.monotonic(), self.seconds
        with StopRequest() as stop, Report(self.progress(), quiet=rank() > 0) as report:
            (enough,) = largest_of_all([self.out_of_patience()], self.device)
            while True:
                seconds = before + time.monotonic() - began
                self.seconds, signal = largest_of_all([seconds, stop.number], self.device)
                done = self.progress()
                due = int(min(1.0, done) * self.settings.validations)
                validate = due > self.validated
                if validate:
                    if self.best is None:  # best weights never stand without a checkpoint
                        self._save()
                    self.validated = due
                    self._validate(report)
                    (enough,) = largest_of_all([self.out_of_patience()], self.device)
                if validate or signal or self.seconds - saved >= SAVE_EVERY:
                    self._save()
                    saved = self.seconds
                if enough:
                    report.write(
                        f"{self.settings.patience} validations brought nothing better: stopped"
                    )
                if signal or enough or done >= 1:
                    break
                loss, tokens = self._update(model, done)
                report.update(self.progress(), loss, tokens)
            report.arrive(self.progress())
        return int(signal)

    def _batch_list(self, epoch: int) -> list[list[Example]]:
        if epoch != self._epoch:
            self._epoch = epoch
            self._batches = batches_of(self.examples, self.budget, self.settings.seed, epoch)
        return self._batches

    def _rate(self, done: float) -> float:
        """The learning rate: up in a line, then down to 0, by updates or by the clock."""
        if self.settings.minutes is None:
            total = self.settings.epochs * self.steps_per_epoch
        else:
            total = 60 * self.settings.minutes
        warmup = max(1.0, self.settings.warmup * total)
        return self.settings.peak_lr * warmup_then_decay_after(done * total, warmup, total)

    def _update(self, model: nn.Module, done: float) -> tuple[float, int]:
        """One step down the gradient of the global batch, of which every process has a share.

        Returns:
            mean loss per token here, and the real tokens of the global batch, both sides.
        """
        epoch, position = divmod(self.step, self.steps_per_epoch)
        examples = self._batch_list(epoch)[position]
        predicted = sum(len(e.target) - 1 for e in examples)
        mine = examples[rank() :: world_size()]
        batch = collate(mine or examples[:1])  # a process without a share must still take part
        tokens = batch.num_tokens if mine else 0
        batch = batch.to(self.device)
        name = f"{self.settings.seed}/{self.step}/{rank()}"
        torch.manual_seed(random.Random(name).getrandbits(63))  # for dropout
        self.model.train()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda"):
            mean = mean_loss(model, batch, self.settings.smoothing)
        step, loss = self.step + 1, share(mean * tokens, predicted)
        try:
            update(loss, self.optimizer, lr=self._rate(done), step=step, clip=CLIP)
        except FloatingPointError as error:
            raise Refused(
                f"{error}. The peak of the learning rate is --lr (now {self.settings.peak_lr:g}), "
                f"the warm-up --warmup (now {self.settings.warmup:g}): change one and start anew "
                "in another --out. The folder keeps the weights of the last validation"
            ) from None
        self.average.update_parameters(self.model)
        self.step = step
        return mean.item(), predicted + sum(len(e.source) for e in examples)

    def _validate(self, report: Report) -> None:
        """Score the averaged weights, and keep them if none before were better.

        Of equal scores, such as the 0 of a beginner, the one with the smaller loss is better.
        """
        if rank() > 0:
            return
        score, loss, best = self.score(self.validation), self.loss(self.validation), self.best
        better = best is None or best.measure != score.name  # as earlier versions measured it
        if better or (score, -loss) >= (best.score, -best.loss):
            better, self.best = True, Best(score, score.name, loss, self.step)
            weights = weights_of(self.average.module)
            write_weights(self.folder, weights, self.best, self.vocabulary)
        row = Row(self.step, self.seconds, report.loss, loss, float(score), score.name)
        self.log.append(row)
        write_log(self.folder, self.log)
        report.validated(row, self.progress(), better)

    def score(self, pairs: Sequence[Pair]) -> Score:
        """Quality of what the averaged weights say: BLEU, or chrF2 where that says nothing."""
        translator = Translator(self.average.module, self.vocabulary, self.vocabulary)
        hypotheses = translate_lines(translator, [pair.source for pair in pairs])
        references = [pair.target for pair in pairs]
        return quality(hypotheses, references, measure_for(references))

    def loss(self, pairs: Sequence[Pair]) -> float:
        """Mean loss per token of the averaged weights, without label smoothing."""
        examples, total, tokens = encode(pairs, self.vocabulary, self.settings.max_len), 0.0, 0
        with evaluating(self.average.module) as model:
            for some in batches_of(examples, self.budget, seed=0, epoch=0):
                count = sum(len(e.target) - 1 for e in some)
                total += count * mean_loss(model, collate(some).to(self.device)).item()
                tokens += count
        return total / tokens

    def _save(self) -> None:
        """Write the checkpoint; before the first update there is nothing to keep."""
        if rank() > 0 or not self.step:
            return
        fields = {
            "settings": asdict(self.settings),
            "digest": self.digest,
            "step": self.step,
            "seconds": self.seconds,
            "validated": self.validated,
        }
        average = self.average.module
        checkpoint.save(self.folder, self.model, average, self.optimizer, fields)
