"""The settings that there are; docs/parameters.md says what each one means."""

# what can decide a result's bits beside params.yaml: a stage that another machine runs takes them
# along
DECIDE_BITS = (
    "GPT1_ATTENTION",
    "GPT1_COMPILE",
    "GPT1_DEEPSPEED",
    "GPT1_DETERMINISTIC",
    "GPT1_MICRO_BATCH",
    "GPT1_THREADS",
    "GPT1_ZERO_STAGE",
)
# likewise, but each machine's own
DEVICES = ("GPT1_BACKEND", "GPT1_DEVICE", "GPT1_HOSTFILE", "GPT1_PROCESSES")
OTHERS = (
    "GPT1_ACCEPT_CHECKPOINT",
    "GPT1_CACHE",
    "GPT1_GOLDEN",
    "GPT1_MLFLOW",
    "GPT1_MLFLOW_PORT",
    "GPT1_OFFLINE",
    "GPT1_SILENT_SECONDS",
    "GPT1_TEXT_EXECUTOR",
    "GPT1_TEXT_TASKS",
)
