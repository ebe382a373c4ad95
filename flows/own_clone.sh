# sh flows/own_clone.sh COMMAND …, typed in a clone that several machines see: runs the command in this machine's own clone of it, beside it
# under its name and the machine's, for DVC's locks hold process numbers. That clone is made, takes this one's commit, and has its .env,
# DVC settings, data/raw and data/checkpoints by links, so that a stage goes on on any machine; packages are those of the active environment,
# or else of this clone's, by make setup.
set -eu
shared=$(pwd -P)
own=$shared-${SLURMD_NODENAME:-$(uname -n)}
if [ -z "${VIRTUAL_ENV:-}" ]; then
    make --silent setup
    PATH=$shared/.venv/bin:$PATH
fi
exec 9>"$own.lock"
flock 9
sh flows/clone.sh "$shared" "$own"
for name in .env .dvc/config.local; do
    if [ -e "$shared/$name" ]; then ln -sfn "$shared/$name" "$own/$name"; fi
done
for folder in "$shared"/data/raw/*/; do
    if [ -d "$folder" ]; then ln -sfn "${folder%/}" "$own/data/raw/"; fi
done
if [ -d "$own/data/checkpoints" ] && [ ! -L "$own/data/checkpoints" ]; then
    echo "error: $own/data/checkpoints is a folder of its own; move what it holds to $shared/data/checkpoints, and remove it" >&2
    exit 1
fi
mkdir -p "$shared/data/checkpoints"
ln -sfn "$shared/data/checkpoints" "$own/data/checkpoints"
exec 9>&-
cd "$own"
export PATH PYTHONPATH="$own${PYTHONPATH:+:$PYTHONPATH}"
exec "$@"
