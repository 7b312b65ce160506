"""ViT-S/16 in timm's form, `vit_small_patch16_224` (Dosovitskiy et al. 2021; Touvron et al. 2021), of 224 pixels.

Layers are called as timm calls its modules, each [b, token, 384] with the class token first; `norm` is the last norm,
`logits` what `head` gives for the class token. 22,050,664 parameters.
"""

from __future__ import annotations

from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.alignment.candidates import parts
from jbench.alignment.candidates.network import Draw, Network, image_model
from jbench.alignment.image_model import LOGITS, ImageModel, Preprocess
from jbench.models.layers import blocks
from jbench.models.layers.prenorm import EPS, Draws, Names, PreNorm, prenorm_tensors
from jbench.models.torch_weights import Tensor, layer_norm_tensors, linear_tensors

WIDTH, HEADS, DEPTH, PATCH, TOKENS = 384, 6, 12, 16, 197
PREPROCESS = Preprocess(224, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 'bicubic')
DRAWS: tuple[Draw, ...] = (
    ('patch_embed.*', 'torch'),
    ('cls_token', 1e-6),
    ('*norm*.weight', 'ones'),
    ('*.bias', 'zeros'),
    ('*', 0.02),
)
LAYERS = ('patch_embed', *(f'blocks.{i}' for i in range(DEPTH)), 'norm', LOGITS)


class _ViT(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> dict[str, jax.Array]:
        """Activations of images x [b, 224, 224, 3]."""
        zeros = nn.initializers.zeros
        draws = Draws(zeros, zeros, zeros, zeros)
        b = len(x)
        x = parts.Conv(3, WIDTH, PATCH, PATCH, name='patch_embed')(x).reshape(b, -1, WIDTH)
        out = {'patch_embed': x}
        token = self.param('cls_token', zeros, (1, 1, WIDTH))
        place = self.param('pos_embed', zeros, (1, TOKENS, WIDTH))
        x = jnp.concatenate([jnp.broadcast_to(token, (b, 1, WIDTH)), x], 1) + place
        for i in range(DEPTH):
            x = out[f'blocks.{i}'] = PreNorm(WIDTH, HEADS, draws, name=f'blocks_{i}')(x, None)
        x = out['norm'] = blocks.LayerNorm(WIDTH, EPS, name='norm')(x)
        out[LOGITS] = blocks.Linear(WIDTH, 1000, name='head')(x[:, 0])
        return out


def tensors() -> list[Tensor]:
    """Timm's state_dict."""
    out = [
        Tensor('cls_token', (1, 1, WIDTH), ('params', 'cls_token')),
        Tensor('pos_embed', (1, TOKENS, WIDTH), ('params', 'pos_embed')),
        *parts.conv_tensors('patch_embed.proj', ('patch_embed',), 3, WIDTH, PATCH),
    ]
    for i in range(DEPTH):
        block = f'blocks.{i}'
        names = Names(
            norm_1=f'{block}.norm1',
            joined=(f'{block}.attn.qkv',),
            rows=(),
            out=f'{block}.attn.proj',
            norm_2=f'{block}.norm2',
            wide=f'{block}.mlp.fc1',
            narrow=f'{block}.mlp.fc2',
        )
        out += prenorm_tensors(names, f'blocks_{i}', WIDTH)
    return [*out, *layer_norm_tensors('norm', ('norm',), WIDTH), *linear_tensors('head', ('head',), WIDTH, 1000)]


def vit_s(seed: int = 0, weights: Path | None = None) -> ImageModel:
    """ViT-S/16 with weights drawn from a seed, as timm draws them, or those of a file. Raises: as `importers.read`."""
    network = Network('vit_s', _ViT(), tensors(), DRAWS, LAYERS, PREPROCESS)
    return image_model(network, seed, weights)
