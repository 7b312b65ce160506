"""Networks in evaluation as plain functions of torch tensors: what an archive answers with.

A twin computes what the network of the same name under jbench/models does, in the literal order of its paper or of its
reference, from the tensors that `Model.to_torch` names. What stands below the line is copied into `submission.py` as it
is: torch and the standard library alone, and nothing of jbench.

Axis letters: b batch, c channel, f feature, t time, l token, d width of a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# ---- copied from here on ----

Tensors = dict[str, Tensor]  # weights by name, and arrays that the network needs beside them
Settings = dict[str, Any]


def batch_norm(w: Tensors, name: str, x: Tensor, eps: float = 1e-5) -> Tensor:
    """x [b, f, ...] by running statistics."""
    mean, var = w[f'{name}.running_mean'], w[f'{name}.running_var']
    return F.batch_norm(x, mean, var, w[f'{name}.weight'], w[f'{name}.bias'], False, 0.0, eps)


def layer_norm(w: Tensors, name: str, x: Tensor, eps: float) -> Tensor:
    """Rows of x [..., d]."""
    return F.layer_norm(x, x.shape[-1:], w[f'{name}.weight'], w[f'{name}.bias'], eps)


def linear(w: Tensors, name: str, x: Tensor) -> Tensor:
    """x [..., d] times a weight, plus a bias."""
    return F.linear(x, w[f'{name}.weight'], w[f'{name}.bias'])


def limited(weight: Tensor, limit: float) -> Tensor:
    """A weight whose slices along the first axis have at most this norm."""
    norm = weight.flatten(1).norm(dim=1)
    factor = torch.where(norm > limit, limit / (norm + 1e-7), torch.ones_like(norm))
    return weight * factor.reshape(-1, *[1] * (weight.ndim - 1))


def along_time(x: Tensor, weight: Tensor, pad: tuple[int, int], groups: int = 1, dilation: int = 1) -> Tensor:
    """Convolution of x [b, f, c, t] with weight [g, f, 1, taps], `pad` zeros before and after."""
    return F.conv2d(F.pad(x, pad), weight, groups=groups, dilation=(1, dilation))


def attention(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    """Heads of softmax(q k' / sqrt(size)) v side by side: all [b, l, d]."""
    b, length, d = q.shape
    q, k, v = (a.reshape(b, length, heads, d // heads).transpose(1, 2) for a in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, length, d)


def eegnet(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]."""
    h = batch_norm(w, 'bnorm_temporal', along_time(x[:, None], w['conv_temporal.weight'], (32, 32)), 1e-3)
    h = F.conv2d(h, limited(w['conv_spatial.parametrizations.weight.original'], 1.0), groups=8)
    h = F.avg_pool2d(F.elu(batch_norm(w, 'bnorm_1', h, 1e-3)), (1, 4))
    h = F.conv2d(along_time(h, w['conv_separable_depth.weight'], (8, 8), 16), w['conv_separable_point.weight'])
    h = F.avg_pool2d(F.elu(batch_norm(w, 'bnorm_2', h, 1e-3)), (1, 8))
    weight, bias = (w[f'final_layer.conv_classifier.{part}'] for part in ('weight', 'bias'))
    return F.linear(h.flatten(1), weight.flatten(1), bias)


def shallow_fbcsp_net(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]."""
    front, last = 'conv_time_spat', 'final_layer.conv_classifier'
    h = F.conv2d(x.transpose(1, 2)[:, None], w[f'{front}.conv_time.weight'], w[f'{front}.conv_time.bias'])
    h = batch_norm(w, 'bnorm', F.conv2d(h, w[f'{front}.conv_spat.weight']))
    h = torch.log(F.avg_pool2d(h**2, (75, 1), (15, 1)).clamp(min=1e-6))
    return F.linear(h.flatten(1), w[f'{last}.weight'].flatten(1), w[f'{last}.bias'])


def deep4net(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]; `pool`: samples of the four."""
    front, last, pool = 'conv_time_spat', 'final_layer.conv_classifier', (s['pool'], 1)
    h = F.conv2d(x.transpose(1, 2)[:, None], w[f'{front}.conv_time.weight'], w[f'{front}.conv_time.bias'])
    h = F.max_pool2d(F.elu(batch_norm(w, 'bnorm', F.conv2d(h, w[f'{front}.conv_spat.weight']))), pool)
    for i in (2, 3, 4):
        h = F.max_pool2d(F.elu(batch_norm(w, f'bnorm_{i}', F.conv2d(h, w[f'conv_{i}.weight']))), pool)
    return F.linear(h.flatten(1), w[f'{last}.weight'].flatten(1), w[f'{last}.bias'])


def eegconformer(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]."""
    front, token = 'patch_embedding.shallownet', 'patch_embedding.projection.0'
    h = F.conv2d(x[:, None], w[f'{front}.0.weight'], w[f'{front}.0.bias'])
    h = F.elu(batch_norm(w, f'{front}.2', F.conv2d(h, w[f'{front}.1.weight'], w[f'{front}.1.bias'])))
    h = F.avg_pool2d(h, (1, 75), (1, 15))[:, :, 0].transpose(1, 2)
    h = F.linear(h, w[f'{token}.weight'].flatten(1), w[f'{token}.bias'])
    for i in range(6):
        mix, feed = f'transformer.{i}.0.fn', f'transformer.{i}.1.fn'
        normed = layer_norm(w, f'{mix}.0', h, 1e-5)
        q, k, v = (linear(w, f'{mix}.1.{part}', normed) for part in ('queries', 'keys', 'values'))
        h = h + linear(w, f'{mix}.1.projection', attention(q, k, v, 10))
        wide = F.gelu(linear(w, f'{feed}.1.0', layer_norm(w, f'{feed}.0', h, 1e-5)))
        h = h + linear(w, f'{feed}.1.3', wide)
    return linear(w, 'final_layer', F.elu(linear(w, 'fc.fc.3', F.elu(linear(w, 'fc.fc.0', h.flatten(1))))))


def ctnet(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]."""
    front, d = 'cnn.eegnet_module', 40
    h = batch_norm(w, f'{front}.1', along_time(x[:, None], w[f'{front}.0.weight'], (31, 32)))
    h = batch_norm(w, f'{front}.3', F.conv2d(h, w[f'{front}.2.weight'], groups=20))
    h = along_time(F.avg_pool2d(F.elu(h), (1, 8)), w[f'{front}.7.weight'], (7, 8))
    h = F.avg_pool2d(F.elu(batch_norm(w, f'{front}.8', h)), (1, 8))
    tokens = h[:, :, 0].transpose(1, 2) * math.sqrt(d)
    first = h = tokens + w['position.encoding'][:, : tokens.shape[1]]
    for i in range(6):
        mix, feed = f'trans.layers.{i}.attention', f'trans.layers.{i}.feed_forward'
        q, k, v = (linear(w, f'{mix}.module.0.{part}', h) for part in ('queries', 'keys', 'values'))
        mixed = linear(w, f'{mix}.module.0.projection', attention(q, k, v, 4))
        h = layer_norm(w, f'{mix}.layernorm', h + mixed, 1e-5)
        wide = F.gelu(linear(w, f'{feed}.module.0.0', h))
        h = layer_norm(w, f'{feed}.layernorm', h + linear(w, f'{feed}.module.0.3', wide), 1e-5)
    return linear(w, 'final_layer', (first + h).flatten(1))


def eegnex(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]."""
    h = batch_norm(w, 'block_1.2', along_time(x[:, None], w['block_1.1.weight'], (31, 32)))
    h = batch_norm(w, 'block_2.1', along_time(h, w['block_2.0.weight'], (31, 32)))
    h = F.conv2d(h, limited(w['block_3.0.parametrizations.weight.original'], 1.0), groups=32)
    h = F.avg_pool2d(F.elu(batch_norm(w, 'block_3.1', h)), (1, 4), padding=(0, 1))
    h = batch_norm(w, 'block_4.1', along_time(h, w['block_4.0.weight'], (15, 15), dilation=2))
    h = batch_norm(w, 'block_5.1', along_time(h, w['block_5.0.weight'], (30, 30), dilation=4))
    h = F.avg_pool2d(F.elu(h), (1, 8), padding=(0, 1))
    weight = limited(w['final_layer.parametrizations.weight.original'], 0.25)
    return F.linear(h.flatten(1), weight, w['final_layer.bias'])


def steegformer(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]; `used`: channels of x, `rows`: theirs in the table, `codes` [1 + patches, d]."""
    x = x[:, w['used']]
    centred = x - x.mean(-1, keepdim=True)
    x = centred / ((centred**2).mean(-1, keepdim=True).sqrt() + 1e-8)
    n = w['codes'].shape[0] - 1
    patches = x[:, :, : n * 16].reshape(x.shape[0], x.shape[1], n, 16).transpose(1, 2).flatten(1, 2)
    places = (w['codes'][1:, None] + w['channel_pos.embedding.weight'][w['rows']]).flatten(0, 1)
    token = (w['cls_token'] + w['codes'][:1]).expand(x.shape[0], -1, -1)
    h = torch.cat([token, linear(w, 'patch_embed.proj', patches) + places], 1)
    for i in range(s['layers']):
        mix, feed = f'encoder.{i}.0.fn', f'encoder.{i}.1.fn'
        normed = layer_norm(w, f'{mix}.0', h, 1e-6)
        q, k, v = (linear(w, f'{mix}.1.{part}', normed) for part in ('queries', 'keys', 'values'))
        h = h + linear(w, f'{mix}.1.projection', attention(q, k, v, s['heads']))
        wide = F.gelu(linear(w, f'{feed}.1.0', layer_norm(w, f'{feed}.0', h, 1e-6)))
        h = h + linear(w, f'{feed}.1.3', wide)
    pooled = layer_norm(w, 'norm', h[:, 0], 1e-6) if s['pool'] == 'cls' else h[:, 1:].mean(1)
    return linear(w, 'head', pooled)


def labram(w: Tensors, s: Settings, x: Tensor) -> Tensor:
    """Outputs [b, n] of x [b, c, t]; `used`: channels of x, `rows`: theirs in the table, `stretch` [patches, 16]."""
    x = x[:, w['used']]
    b, c, t = x.shape
    n, heads = w['stretch'].shape[0], 10
    h = F.pad(x, (0, max(200 - t, 0)))[:, :, : n * 200].reshape(b, 1, c * n, 200)
    for i in (1, 2, 3):
        conv, norm = (f'patch_embed.temporal_conv.{part}{i}' for part in ('conv', 'norm'))
        stride, pad = ((1, 8), (0, 7)) if i == 1 else ((1, 1), (0, 1))
        h = F.conv2d(h, w[f'{conv}.weight'], w[f'{conv}.bias'], stride, pad)
        h = F.gelu(F.group_norm(h, 4, w[f'{norm}.weight'], w[f'{norm}.bias']))
    patches = h.permute(0, 2, 3, 1).flatten(2)
    space = w['position_embedding'][0]
    places = (space[w['rows']][:, None] + w['stretch'] @ w['temporal_embedding'][0]).flatten(0, 1)
    h = torch.cat([(w['cls_token'] + space[:1]).expand(b, -1, -1), patches + places], 1)
    for i in range(12):
        block = f'blocks.{i}'
        q, k, v = F.linear(layer_norm(w, f'{block}.norm1', h, 1e-6), w[f'{block}.attn.qkv.weight']).chunk(3, -1)
        shape = (*q.shape[:2], heads, q.shape[2] // heads)
        q = layer_norm(w, f'{block}.attn.q_norm', q.reshape(shape), 1e-6).flatten(2)
        k = layer_norm(w, f'{block}.attn.k_norm', k.reshape(shape), 1e-6).flatten(2)
        h = h + w[f'{block}.gamma_1'] * linear(w, f'{block}.attn.proj', attention(q, k, v, heads))
        wide = F.gelu(linear(w, f'{block}.mlp.0', layer_norm(w, f'{block}.norm2', h, 1e-6)))
        h = h + w[f'{block}.gamma_2'] * linear(w, f'{block}.mlp.2', wide)
    return linear(w, 'head', layer_norm(w, 'norm', h, 1e-6).mean(1))


NETWORKS: dict[str, Callable[[Tensors, Settings, Tensor], Tensor]] = {
    f.__name__: f for f in (eegnet, shallow_fbcsp_net, deep4net, eegconformer, ctnet, eegnex, steegformer, labram)
}
