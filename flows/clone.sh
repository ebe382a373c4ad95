# sh flows/clone.sh FROM TO: the clone in the folder TO takes the commit of the clone FROM; where there is none yet, it is made.
set -eu
mkdir -p "$2"
cd "$2"
[ -d .git ] || git clone -q "$1" .
[ "$(git rev-parse HEAD)" = "$(git -C "$1" rev-parse HEAD)" ] && exit 0
mkdir -p .dvc/tmp
if ! flock --nonblock .dvc/tmp/gpt1-run.lock git pull -q --ff-only "$1" HEAD; then
    echo "error: the clone in $2 cannot take the commit of $1: a run is at work in it, or it has changes of its own there" >&2
    exit 1
fi
