"""Every assumed number of the plan that no file and no measurement gives, in one place, each with
where it came from.
"""

# Seconds from `gpt1 run` starting a stage to its work, and from its work to its end: DVC (1.0 s),
# Python, imports, reading and writing.
# CPU seconds on two cores of an AMD EPYC (Zen 3); scaled by the speed of this machine's cores, see
# REFERENCE_PYTHON_SECONDS.
START_SECONDS = {
    "check": 1.5,
    "world": 1.5,
    "download": 2.5,
    "acquire": 1.5,
    "clean": 4.5,
    "contamination": 6.0,
    "bpe": 2.6,
    "shard": 2.2,
    "word_vectors": 3.0,
    "baselines": 3.0,
    "encode": 6.0,
    "prompt": 6.0,
    "pretrain": 5.0,
    "finetune": 5.0,
    "ablate": 5.0,
    "transfer": 5.0,
    "zero_shot": 5.0,
    "generate": 5.0,
    "table2": 4.0,
    "table3": 3.0,
    "table4": 4.0,
    "table5": 7.0,
    "figure2": 6.0,
    "curves": 5.0,
    "claims": 12.0,
    "scores": 3.0,
}
OTHER_START_SECONDS = 3.0  # of a stage that is not named above
NETWORK_SECONDS = (
    1.0  # of each network of a stage: drawing it, loading weights, writing logits and weights
)
# Bytes of raw text a second and core. Books: 70 MB cleaned, learned and encoded in 39 s on two
# cores (README, small).
BYTES_A_SECOND = {
    "world": 0.11e6,
    "acquire": 100e6,
    "clean": 1.5e6,
    "contamination": 30e6,
    "bpe": 15e6,
    "shard": 4e6,
    "encode": 0.8e6,
    "word_vectors": 1.5e6,
    "baselines": 0.04e6,  # 36 fits of each task of the demo, or 16 of MNLI's 393,000 rows
}
SEVERAL_PROCESSES = (
    "clean",
    "shard",
    "word_vectors",
    "encode",
    "prompt",
)  # stages that go through text on every core
PARALLEL_BYTES = 8e6  # text that is worth a further process (gpt1/corpus/parallel.py)

REFERENCE_PYTHON_SECONDS = (
    0.06  # CPU seconds of machines.python_seconds() on the machine of the figures above
)

# Assumed share of the peak in bf16: what well-tuned training of networks of this size is reported
# to reach on GPUs (0.3 to 0.55).
GPU_SHARE = 0.40
GPU_SCORED_SHARE = 0.30  # evaluation: shorter kernels, the same launches
GPU_LAUNCH_SECONDS = 6e-6  # of a kernel, from Python
KERNELS_A_LAYER, KERNELS_AN_UPDATE = (
    70,
    250,
)  # forward and backward; embeddings, softmax, clipping, Adam
RECURRENT_SECONDS = 30e-6  # of one step in time of an LSTM, forward and backward (cuDNN)
GPU_TUNING_SECONDS = 20.0  # before the first update: CUDA, compilation
LINK_BYTES_A_SECOND = 450e9  # out of a GPU here to the others: NVLink of an H100
ADAM_TRAFFIC_BYTES = (
    28.0  # of a parameter in an update: weight, gradient, moments read, weight and moments written
)

# of the limit in bf16 on two cores: 26 MFLOP a token at 7,000 tokens/s against 0.42 TFLOP/s
# (README, small)
CPU_SHARE = 0.45
CPU_UPDATE_SECONDS = 0.02  # Python and small operations of an update
# of the GPUs' own power: host, network, cooling fans (NVIDIA DGX data sheets: 10.2 kW for 8 x 700 W
# is more)
WATTS_BESIDE_GPUS = 0.25
