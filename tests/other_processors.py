"""Matrix products that round as on another processor: `python -m pytest -p tests.other_processors`.

A library promises a product to rounding, not that equal rows have equal bits wherever they stand.
On many processors they have, so that a test may take it for granted unseen. With this plugin every
element of a CPU's product in float32 is off by -2 to 2 times 2^-23 of itself, by a hash of its
place and of the product's shape: the same product has the same bits again, as on any processor.
A test that fails with it and passes without takes equal bits for granted. `--rounding 1` (2, …) is
yet another processor. Processes that a test starts compute as ever, so tests are left out that
compare with such a one to the bit.
"""

import warnings

import pytest

SHAPES = {
    "mm": lambda one, other: (one.shape[0], other.shape[1]),
    "addmm": lambda _, one, other: (one.shape[0], other.shape[1]),
    "bmm": lambda one, other: (one.shape[0], one.shape[1], other.shape[2]),
    "baddbmm": lambda _, one, other: (one.shape[0], one.shape[1], other.shape[2]),
    "mv": lambda one, other: (one.shape[0],),
    "addmv": lambda _, one, other: (one.shape[0],),
    "dot": lambda one, other: (),
}
BESIDE_A_PROCESS = "test_an_interrupted_"
KEY = pytest.StashKey[object]()


def pytest_addoption(parser):
    parser.addoption("--rounding", type=int, default=0, help="products round in this of many ways")


def pytest_configure(config):
    config.stash[KEY] = round_otherwise(config.getoption("--rounding"))


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if not item.name.startswith(BESIDE_A_PROCESS)]


def round_otherwise(number):
    """All of torch's matrix products on a CPU in this process, for as long as the result lives."""
    import torch  # not above: conftest.py first says how many threads

    def moved(product):
        place = torch.arange(product.numel()) + hash((number, *product.shape)) % (1 << 31)
        hashed = (place * 0x9E3779B1 % (1 << 32)) * 0x85EBCA6B % (1 << 32)
        steps = (hashed ^ (hashed >> 15)) % 5 - 2
        return product * (1 + torch.finfo(product.dtype).eps * steps.view(product.shape)).to(
            product.dtype
        )

    def by(name):
        out, shape = getattr(torch.ops.aten, name).out, SHAPES[name]

        def product(*operands, **factors):
            kind = operands[0].dtype
            if not kind.is_floating_point:
                return out(*operands, **factors, out=operands[0].new_empty(shape(*operands)))
            if kind.itemsize == 2:  # bfloat16: summed in float32 and rounded once, as in hardware
                operands = [operand.float() for operand in operands]
            empty = operands[0].new_empty(shape(*operands))
            return moved(out(*operands, **factors, out=empty)).to(kind)

        return product

    # Attention and an LSTM have products within kernels of their own; so they go by those above.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.mkldnn.set_flags(False)
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced
        for name in SHAPES:
            library.impl(name, by(name), "CPU")
    return library
