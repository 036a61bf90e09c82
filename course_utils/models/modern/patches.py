"""A vision encoder: a picture is cut into patches, which are its words (视觉 Transformer, ViT)."""

import torch
from torch import Tensor, nn

from course_utils.models.transformer import EncoderBlock, initialise, run_blocks


def cut(pictures: Tensor, patch: int) -> Tensor:
    """(B, C, H, W) -> (B, N, C * patch^2): patches row by row, each as one vector.

    Raises:
        ValueError: the sides are no multiples of `patch`.
    """
    height, width = pictures.shape[-2:]
    if height % patch or width % patch:
        raise ValueError(f"patches of {patch} do not tile a picture of {height} x {width}")
    grid = pictures.unflatten(-1, (-1, patch)).unflatten(-3, (-1, patch))  # (B, C, h, p, w, p)
    return grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


class VisionEncoder(nn.Module):
    """Patches, a class token before them, positions, the encoder blocks of chapter 8, a label.

    Source: Dosovitskiy et al. 2021, An image is worth 16 x 16 words, section 3.1.

    Args:
        size, patch: pixels a side of a picture and of a patch.
        num_classes: labels.
        channels: 1 for grey pictures.
        d_model, num_heads, d_ff, num_layers, dropout: as in `TransformerConfig`.
        positions: trained vectors, one a patch; False: the encoder sees a bag of patches.
    """

    def __init__(
        self,
        size: int,
        patch: int,
        num_classes: int,
        channels: int = 1,
        d_model: int = 64,
        num_heads: int = 4,
        d_ff: int = 128,
        num_layers: int = 3,
        dropout: float = 0.0,
        positions: bool = True,
    ):
        super().__init__()
        self.patch = patch
        number = cut(torch.zeros(1, channels, size, size), patch).shape[1]
        self.embedding = nn.Linear(channels * patch * patch, d_model)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, d_ff, dropout, norm_first=True)
            for _ in range(num_layers)
        )
        self.norm, self.output = nn.LayerNorm(d_model), nn.Linear(d_model, num_classes)
        initialise(self)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = (
            nn.Parameter(0.02 * torch.randn(number + 1, d_model)) if positions else None
        )

    def forward(self, pictures: Tensor, *, return_weights: bool = False):
        """(B, C, H, W) -> logits (B, num_classes), and one (B, h, 1 + N, 1 + N) a layer.

        Row 0 of a map is where the class token looks; its columns 1 to N are the patches.
        """
        x = self.embedding(cut(pictures, self.patch))  # (B, N, d_model)
        x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)  # (B, 1 + N, d_model)
        if self.positions is not None:
            x = x + self.positions
        x, maps = run_blocks(self.blocks, x, return_weights=return_weights)
        logits = self.output(self.norm(x[:, 0]))
        return (logits, maps) if return_weights else logits


def small_convnet(num_classes: int, channels: int = 1, width: int = 32) -> nn.Sequential:
    """Three convolutions, each after the first at half the resolution, and the mean over places.

    It knows beforehand that neighbours belong together and that a shape is the same anywhere.
    """
    layers, before = [], channels
    for stride in (1, 2, 2):
        layers += [nn.Conv2d(before, width, 3, stride, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        before = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes)
    )
