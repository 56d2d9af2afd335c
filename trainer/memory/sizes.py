"""How many numbers a model is, and how many bytes they take in training and in use."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise


def perceptron_parameters(*widths: int) -> tuple[int, int]:
    """(weights, biases) of a fully connected network from the first width to the last."""
    return sum(one * other for one, other in pairwise(widths)), sum(widths[1:])


@dataclass(frozen=True)
class Transformer:
    """Of GPT-2's and GPT-3's shape: learned positions, norms with bias, a feed-forward four times as wide.

    With `tied_head` the scores are products with the token embedding; else the head is a Linear of its own.
    """

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int
    tied_head: bool = False

    @property
    def token_embedding(self) -> int:
        return self.vocabulary * self.width

    @property
    def position_embedding(self) -> int:
        return self.context * self.width

    @property
    def attention(self) -> int:
        """A block's matrices for queries, keys and values, and the one that joins the heads."""
        return 4 * self.width**2

    @property
    def feed_forward(self) -> int:
        """A block's two matrices, to four times the width and back."""
        return 8 * self.width**2

    @property
    def norms(self) -> int:
        """A block's two norms, a weight and a bias each."""
        return 4 * self.width

    @property
    def biases(self) -> int:
        """Of a block's four matrices."""
        return 9 * self.width

    @property
    def block(self) -> int:
        return self.attention + self.feed_forward + self.norms + self.biases

    @property
    def head(self) -> int:
        """The last norm, and the scores' own matrix and bias if there is one."""
        return 2 * self.width + (0 if self.tied_head else self.vocabulary * (self.width + 1))

    @property
    def parameters(self) -> int:
        return self.token_embedding + self.position_embedding + self.layers * self.block + self.head


GPT_3 = Transformer(layers=96, width=12_288, heads=96, context=2048, vocabulary=50_257, tied_head=True)  # Brown et al., 2020

# What ranks with copies of the same stages share out among them (Rajbhandari et al., "ZeRO", 2020).
SHARED_OUT: dict[str, tuple[str, ...]] = {
    "zero-1": ("optimizer",),
    "zero-2": ("optimizer", "gradients"),
    "zero-3": ("optimizer", "gradients", "weights"),
}


def bytes_per_parameter(mode: str, copies: int, weights: int = 2, gradients: int = 2, optimizer: int = 12) -> Fraction:
    """A rank's bytes a parameter under `mode`, "ddp" or a stage of ZeRO, over so many `copies`.

    The defaults are Adam's in mixed precision: weights and gradients in 2 bytes; of the optimizer a master copy and two
    moments, 4 bytes each. 16 by DDP, and 4 + 12/N, 2 + 14/N, 16/N by ZeRO-1, 2, 3 (the ZeRO paper, section 3).
    """
    shared_out = SHARED_OUT.get(mode, ())
    whole = {"weights": weights, "gradients": gradients, "optimizer": optimizer}
    return sum((Fraction(size, copies if kind in shared_out else 1) for kind, size in whole.items()), Fraction(0))


def kv_cache_bytes(model: Transformer, tokens: int, sequences: int = 1, element_bytes: int = 2) -> int:
    """Keys and values of all layers for `tokens` of each sequence, kept while text is being written."""
    return 2 * model.layers * model.width * tokens * sequences * element_bytes


def logits_bytes(samples: int, tokens: int, vocabulary: int, element_bytes: int) -> int:
    """A score for every token that could come next, at every place."""
    return samples * tokens * vocabulary * element_bytes


def score_grid_bytes(samples: int, heads: int, tokens: int, element_bytes: int) -> int:
    """Attention's scores of one layer where they are written out, every token against every other. The wall that grows
    with the square; the kernel that this trainer uses keeps one number a row instead (Dao et al., "FlashAttention", 2022)."""
    return samples * heads * tokens**2 * element_bytes
