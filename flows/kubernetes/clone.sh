# Before a run: the volume's clone (the folder $1) takes the commit of the image (its clone at /project); the first time it is made.
set -eu
cd "$1"
[ -d .git ] || git clone -q /project .
[ "$(git rev-parse HEAD)" = "$(git -C /project rev-parse HEAD)" ] && exit 0
mkdir -p .dvc/tmp
if ! flock --nonblock .dvc/tmp/gpt1-run.lock git pull -q --ff-only /project HEAD; then
    echo "error: the clone on the volume cannot take the image's commit: a run is at work in it, or it has changes of its own there" >&2
    exit 1
fi
