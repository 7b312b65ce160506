"""Published files of weights, by the names of tensors that are known of them: each is taken, and nothing is lost.

The names are those of the code that writes or reads these files; no file was read. Shapes are those of the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from jbench.models import torch_weights
from jbench.models.foundation import (
    bendr,
    biot,
    cbramod,
    codebrain,
    eegdino,
    eegpt,
    labram,
    luna,
    reve,
    signal_jepa,
    signal_jepa_local,
    steegformer,
)
from jbench.models.model import Model
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

STANDARD_19 = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2'.split())
FRONT = 'patch_embedding.proj_in.{0,1,3,4,6,7}.* patch_embedding.spectral_proj.0.*'
PACKED = '{in_proj_weight,in_proj_bias,out_proj.weight,out_proj.bias}'
BIOT = (
    'encoder.patch_embedding.projection.* encoder.transformer.layers.layers.{0-3}.0.fn.{to_q,to_k,to_v}.weight '
    'encoder.transformer.layers.layers.{0-3}.{0.fn.to_out,0.norm,1.fn.fn.w1,1.fn.fn.w2,1.norm}.* '
    'encoder.positional_encoding.pe encoder.channel_tokens.weight'
)
CODEBRAIN = (
    f'patch_embedding.mask_encoding {FRONT} patch_embedding.positional_encoding.0.* '
    '{init_conv.0,final_conv.0}.conv.{bias,parametrizations.weight.original0,parametrizations.weight.original1} '
    'final_conv.2.conv.* residual_layer.residual_blocks.{0-7}.rms_norm.scale '
    'residual_layer.residual_blocks.{0-7}.{conv_layer.conv,res_conv,skip_conv}.'
    '{bias,parametrizations.weight.original0,parametrizations.weight.original1} '
    'residual_layer.residual_blocks.{0-7}.sgconv.{skip_weight,multiplier,kernel_norm,kernel_norm_initialized} '
    'residual_layer.residual_blocks.{0-7}.sgconv.kernel_list.{0-9} '
    'residual_layer.residual_blocks.{0-7}.sgconv.output_linear.* '
    f'residual_layer.residual_blocks.{{0-7}}.attention.{PACKED} norm.*'
)
LUNA = (
    'mask_token patch_embed.proj_in.{0,1,3,4,6,7}.* freq_embed.frequency_to_embed.{fc1,fc2}.* '
    f'cross_attn.query_embed cross_attn.cross_attention.{PACKED} cross_attn.{{keys,values,queries}}_norm.* '
    f'cross_attn.ffn.{{fc1,fc2}}.* cross_attn.query_self_attn.layers.{{0-2}}.self_attn.{PACKED} '
    'cross_attn.query_self_attn.layers.{0-2}.{linear1,linear2,norm1,norm2}.* '
    'blocks.{0-7}.{norm1,attn.qkv_proj,attn.proj,norm2,mlp.fc1,mlp.fc2,mlp.norm}.* '
    'blocks.{0-7}.attn.rotary_emb.freqs norm.*'
)
LUNA_AUTHORS = (
    f'{LUNA} channel_location_embedder.0.{{fc1,fc2,norm}}.* cross_attn.ffn.norm.* cross_attn.temparature '
    'decoder_head.a.* channel_emb.embeddings.weight'
)
REVE = (
    'to_patch_embedding.0.* mlp4d.0.weight mlp4d.2.* ln.* '
    'transformer.layers.{0-21}.0.{norm,to_qkv,to_out}.weight transformer.layers.{0-21}.1.net.{0,1,3}.weight'
)
JEPA = (
    'feature_encoder.{1-5}.0.weight feature_encoder.1.2.* '
    f'transformer.{{encoder.layers.{{0-7}},decoder.layers.{{0-3}}}}.self_attn.{PACKED} '
    'transformer.{encoder.layers.{0-7},decoder.layers.{0-3}}.{linear1,linear2,norm1,norm2}.* '
    'transformer.{encoder,decoder}.norm.*'
)
STEEGFORMER = (
    'cls_token patch_embed.proj.* channel_pos.embedding.weight encoder.{0-7}.{0,1}.fn.0.* '
    'encoder.{0-7}.0.fn.1.{keys,queries,values,projection}.* encoder.{0-7}.1.fn.1.{0,3}.* norm.*'
)
EEGPT = (
    'target_encoder.summary_token target_encoder.{patch_embed.proj,norm}.* target_encoder.chan_embed.weight '
    'target_encoder.blocks.{0-7}.{norm1,attn.qkv,attn.proj,norm2,mlp.fc1,mlp.fc2}.*'
)
EEGDINO = (
    f'global_tokens {FRONT} patch_embedding.{{channel_embedding,time_encoding.0}}.* '
    'encoder_layers.{0-11}.{norm1,attn.proj,norm2,mlp.fc1,mlp.fc2}.* '
    'encoder_layers.{0-11}.attn.{q_bias,v_bias,qkv.weight}'
)
BENDR = (
    'encoder.encoder.Encoder_{0-5}.{0,2}.* contextualizer.input_conditioning.{1,3}.* '
    'contextualizer.relative_position.0.{bias,parametrizations.weight.original0,parametrizations.weight.original1} '
    f'contextualizer.transformer_layers.{{0-7}}.self_attn.{PACKED} '
    'contextualizer.transformer_layers.{0-7}.{linear1,linear2}.* contextualizer.{norm,output_layer}.*'
)
LABRAM = (
    'cls_token position_embedding temporal_embedding patch_embed.temporal_conv.{conv,norm}{1-3}.* norm.* '
    'blocks.{0-11}.{gamma_1,gamma_2,attn.qkv.weight} '
    'blocks.{0-11}.{norm1,attn.q_norm,attn.k_norm,attn.proj,norm2,mlp.0,mlp.2}.*'
)
CBRAMOD = (
    f'patch_embedding.mask_encoding patch_embedding.positional_encoding.0.* {FRONT} '
    f'encoder.layers.{{0-11}}.{{self_attn_s,self_attn_t}}.{PACKED} '
    'encoder.layers.{0-11}.{linear1,linear2,norm1,norm2}.* proj_out.0.*'
)
FILES = {  # names of a file, the network, and how many tensors of the file are not read
    'bendr': (BENDR, bendr.bendr, 0),
    'bendr with a head': (f'{BENDR} final_layer.{{bias,parametrizations.weight.original0}}', bendr.bendr, 2),
    'bendr, nested': (
        'encoder_state_dict.'
        + BENDR.removeprefix('encoder.').replace(' contextualizer.', ' contextualizer_state_dict.'),
        bendr.bendr,
        0,
    ),
    'biot': (f'{BIOT} final_layer.classification_head.*', biot.biot, 3),
    'biot, old and without a head': (f'{BIOT} encoder.index', biot.biot, 2),
    'labram': (LABRAM, labram.labram, 0),
    'cbramod': (CBRAMOD, cbramod.cbramod, 0),
    'luna of the authors': (LUNA_AUTHORS, luna.luna_base, 1 + 8 + 4 + 1 + 2 + 1),
    'luna of braindecode': (
        f'{LUNA} channel_location_embedder.{{fc1,fc2}}.* cross_attn.temperature',
        luna.luna_base,
        1 + 8 + 1,
    ),
    'reve of the authors': (f'{REVE} cls_query_token', reve.reve_base, 1),
    'reve of braindecode': (f'{REVE} final_layer.{{1,2}}.*', reve.reve_base, 4),
    'signal_jepa': (JEPA, signal_jepa.signal_jepa, 4 * 12 + 2),
    'signal_jepa_post_local': (JEPA, signal_jepa_local.signal_jepa_post_local, 12 * 12 + 4),
    'signal_jepa_pre_local': (
        f'{JEPA} pos_encoder.pos_encoder_spat.weight',
        signal_jepa_local.signal_jepa_pre_local,
        12 * 12 + 5,
    ),
    'steegformer': (STEEGFORMER, steegformer.steegformer_small, 0),
    'steegformer with a head': (f'{STEEGFORMER} final_layer.*', steegformer.steegformer_small, 2),
    'eegpt': (EEGPT, eegpt.eegpt, 0),
    'eegpt with a montage': (f'{EEGPT} chans_id', eegpt.eegpt, 1),
    'eegdino': (EEGDINO, eegdino.eegdino_small, 0),
    'eegdino with a head': (f'{EEGDINO} final_layer.classifier.{{0,3,6}}.*', eegdino.eegdino_small, 6),
    'codebrain': (CODEBRAIN, codebrain.codebrain, 0),
    'codebrain with heads': (f'{CODEBRAIN} lm_head_{{t,f}}.weight final_layer.{{1,4,7}}.*', codebrain.codebrain, 8),
}


def names(text: str) -> Iterator[str]:
    """'a.{0-2}.{b,c}' as all the names that it stands for; `.*` is weight and bias."""
    for word in text.split():
        whole = f'{word[:-1]}{{weight,bias}}' if word.endswith('.*') else word
        found = re.search(r'\{([^{}]*)\}', whole)
        if not found:
            yield whole
            continue
        numbers = re.fullmatch(r'(\d+)-(\d+)', found[1])
        parts = map(str, range(int(numbers[1]), int(numbers[2]) + 1)) if numbers else found[1].split(',')
        for part in parts:
            yield from names(whole[: found.start()] + part + whole[found.end() :])


def built(factory: object) -> Model:
    where = tuple((0.01 * i, 0.0, 0.1) for i in range(19))
    signal = Signal(n_chans=19, n_times=800, sfreq=200.0, ch_names=STANDARD_19, positions=where)
    return factory(signal, 2)  # type: ignore[operator]


def file_of(model: Model, text: str) -> dict[str, np.ndarray]:
    """A state_dict of these names, of zeros that take no memory."""
    shapes = {tensor.name: tensor.shape for tensor in model.tensors}
    constant = {tensor.name for tensor in model.tensors if not tensor.path}
    pairs = [pair for layout in model.checkpoints for pair in layout.renamed]

    def ours(name: str) -> str:
        return next((new[:-1] + name[len(old) - 1 :] for old, new in pairs if name.startswith(old[:-1])), name)

    return {
        name: np.broadcast_to(np.int64(1) if name in constant else np.float32(0), shapes.get(ours(name), (1,)))
        for name in names(text)
    }


@pytest.mark.parametrize('which', FILES)
def test_every_tensor_that_it_has_of_the_network_is_read(which: str) -> None:
    text, factory, unread = FILES[which]
    model = built(factory)
    found = file_of(model, text)
    told = []
    for layout in model.checkpoints:
        try:
            told.append(torch_weights.described(model.tensors, found, layout))
        except RequestError as error:
            told.append(str(error))
    (fits,) = (line for line in told if 'tensors read' in line)
    assert fits.startswith(f'{len(found) - unread} tensors read; ')
    assert f'of the file not read: {unread or "none"}' in fits
    for name in (n for n in found if n in {t.name for t in model.tensors}):
        less = {n: a for n, a in found.items() if n != name}
        with pytest.raises(RequestError, match=re.escape(f'missing: {name} [')):
            torch_weights.described(model.tensors, less, model.checkpoints[0])
        break


def test_norms_of_luna_that_are_left_out_are_told() -> None:
    text, factory, _ = FILES['luna of the authors']
    model = built(factory)
    told = torch_weights.described(model.tensors, file_of(model, text), model.checkpoints[1])
    assert 'channel_location_embedder.norm.*, cross_attn.ffn.norm.*, cross_attn.temparature' in told
    assert 'blocks.*.attn.rotary_emb.freqs' in told and len(told) < 400


def test_what_nobody_declared_is_refused() -> None:
    model = built(reve.reve_small)
    found = file_of(model, REVE.replace('{0-21}', '{0-3}')) | {'student.mask': np.zeros(1, np.float32)}
    with pytest.raises(RequestError, match=r'unexpected: student\.mask \[1\]$'):
        torch_weights.described(model.tensors, found, model.checkpoints[0])
