"""What precision asks for: bfloat16 products where the device has them, float32 elsewhere."""

import pytest
import torch
from made_data import seeded, tiny_sizes

from gpt1.model.gpt import Decoder
from gpt1.train import speed

SIZES = tiny_sizes(context=12, width=32, heads=2, deviation=0.3)
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("wanted", "native", "expected"),
    [
        ("fp32", True, "fp32"),
        ("fp32", False, "fp32"),
        ("bf16", True, "bf16"),
        ("bf16", False, "fp32"),
    ],
)
def test_a_processor_without_bf16_computes_in_fp32(wanted, native, expected, monkeypatch):
    monkeypatch.setattr(speed, "native_bf16", lambda: native)
    assert speed.arithmetic(CPU, wanted) == expected
    assert speed.arithmetic(torch.device("cuda"), wanted) == wanted


def test_norms_are_of_float32_sums_where_products_are_of_bfloat16():
    network, seen = Decoder(SIZES, 40, seeded(0)), []
    for block in network.blocks:
        block.qkv.register_forward_hook(lambda _, given, made: seen.append(made.dtype))
        for norm in (block.attention_norm, block.feed_forward_norm):
            norm.register_forward_hook(lambda *call: seen.append(call))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        network(torch.randint(0, 40, (4, 12), generator=seeded(2)))
    assert len(seen) == 3 * SIZES.layers
    assert set(seen[::3]) == {torch.bfloat16}
    for norm, (sums_md,), normed_md in (*seen[1::3], *seen[2::3]):
        assert sums_md.dtype == normed_md.dtype == torch.float32
        torch.testing.assert_close(
            normed_md.double(), norm.double()(sums_md.double()), rtol=1e-5, atol=1e-5
        )
        norm.float()
