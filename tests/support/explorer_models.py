"""Small translators with two vocabularies, for the tests of the explorer."""

import numpy as np
import torch

from course_utils.models.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.vocab import Vocab
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator

ENGLISH = Vocab([["i'm", "home", ".", "i", "lost", "we", "are", "late"]])
FRENCH = Vocab([["je", "suis", "chez", "moi", ".", "j'", "ai", "perdu", "nous"]])
TEXT = "We are home."


def transformer(heads=4, layers=2, **changes):
    set_seed(3)
    sizes = {"d_model": 16, "num_heads": heads, "d_ff": 32, "max_len": 20, "dropout": 0.5}
    config = TransformerConfig(
        len(ENGLISH), len(FRENCH), num_encoder_layers=1, num_decoder_layers=layers,
        **{**sizes, **changes},
    )  # fmt: skip
    return Translator(Transformer(config), ENGLISH, FRENCH)


def recurrent(decoder=BahdanauDecoder):
    set_seed(3)
    encoder = GRUEncoder(len(ENGLISH), 6, 8)
    return Translator(Seq2Seq(encoder, decoder(len(FRENCH), 6, 8)), ENGLISH, FRENCH)


def unpack(packed):
    x = np.frombuffer(packed["data"], np.dtype(packed["dtype"]).newbyteorder("<"))
    return torch.tensor(x.reshape(packed["shape"]).astype(packed["dtype"]))
