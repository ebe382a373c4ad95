#!/usr/bin/env bash
# `make setup`: a virtual environment with the packages of constraints.txt, by uv or pip.
# PYTHON, VENV (.venv); TORCH_INDEX: another index for torch, kept until another is named.
# It is changed only where its setup.made holds its own path. setup.done: what it was installed from; absent while not whole.
cd -P "$(dirname "$0")/.." || exit 2
say() { echo "set-up: $*" >&2; }
fail() { echo "error: $*" >&2; exit 2; }
trap 'echo "interrupted: the environment is not whole; the same command goes on" >&2; exit 130' INT
unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_QUIET VIRTUAL_ENV
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
name=${VENV:-.venv} elsewhere='or name another folder: make setup VENV=/path/to/a/new/folder'
while [[ $name == ?*/ ]]; do name=${name%/}; done
case $name in /*) venv=$name ;; *) venv=$PWD/$name ;; esac

minor='import sys; print(*sys.version_info[:2])'
read_mark() { { read -r owner && read -r index; } 2>/dev/null <"$venv/setup.made"; }
whole() {  # it works, with the Python and the index that are asked for
  local own
  [[ -f $venv/setup.done && ${TORCH_INDEX:-$index} == "$index" ]] && own=$("$venv/bin/python" -I -c "import gpt1; $minor" 2>/dev/null) &&
    { [[ -z $PYTHON ]] || [[ $("$PYTHON" -I -S -c "$minor" 2>/dev/null) == "$own" ]]; }
}
current() { cat pyproject.toml constraints.txt | cmp -s - "$venv/setup.done" && whole; }

read_mark
[[ $venv != *:* ]] || fail "$venv: no environment works below a name with ':' in it; move the checkout, $elsewhere"
[[ ! -L $venv ]] || fail "$name is a link: this checkout made nothing behind it, and leaves it alone; remove the link, $elsewhere"
[[ ! -e $venv || $owner == "$venv" || -d $venv && -z $(ls -A "$venv") ]] ||
  fail "$name was made ${owner:+as $owner, }not by this checkout, and is left alone; move it away or remove it, $elsewhere"
current && exit

look='import sys
if sys.version_info < (3, 11): sys.exit("%d.%d is too old" % sys.version_info[:2])
try: import ensurepip, venv
except ImportError: sys.exit("%d.%d has no venv; Debian, Ubuntu: apt install python%d.%d-venv" % (sys.version_info[:2] * 2))'
while IFS= read -r python <&3; do
  [[ $python != "$venv"/* ]] || continue
  why=$("$python" -I -c "$look" 2>&1) && break
  if [[ $why == [23].* && $found != *"$why"* ]]; then found="$found${found:+, }$python ($why)"; fi
  python=
done 3< <(if [[ $PYTHON ]]; then echo "$PYTHON"; else type -ap python3 python3.{13,12,11,14}; fi)
[[ $python ]] || fail "Python 3.11 or later is needed, with venv; ${found:-${PYTHON:-none} does not start}: install one, or name one: make setup PYTHON=/path/to/python3.12"

{ mkdir -p "$venv" && [[ -w $venv ]] && { [[ $owner ]] || printf '%s\n\n' "$venv" >"$venv/setup.made"; } && exec 9>>"$venv/setup.lock"; } 2>/dev/null ||
  fail "$venv cannot be written: clone into a folder where you may write, $elsewhere"
# An installer that outlives a killed set-up inherits descriptor 9, and keeps the lock.
lock() { "$python" -I -S -c "import fcntl; fcntl.flock(9, fcntl.LOCK_EX | $1)" 2>/dev/null; }
lock fcntl.LOCK_NB || { say "waiting for another set-up of $name to end"; lock 0; }
read_mark
current && exit

whole && anew= || anew=1
rm -f "$venv/setup.done"
cat pyproject.toml constraints.txt >"$venv/setup.next"
if [[ $anew ]]; then
  index=${TORCH_INDEX:-$index}
  say "an empty environment in $name, with $python"
  find "$venv" -mindepth 1 -maxdepth 1 ! -name 'setup.*' -exec rm -rf {} +
  printf '%s\n%s\n' "$venv" "$index" >"$venv/setup.made"
  "$python" -I -m venv "$venv" || fail "$python cannot make a virtual environment in $name: what it says stands above"
fi

pip() { "$venv/bin/python" -I -m pip "$@"; }
wanted=(--constraint constraints.txt ${index:+--extra-index-url "$index"})
uv=$(type -P uv) || {
  uv=$venv/setup.uv/bin/uv
  export UV_CACHE_DIR=$venv/setup.uv/cache  # on the same disk: hard links
  [[ -x $uv ]] || pip install --quiet --retries 1 --target "$venv/setup.uv" --constraint constraints.txt uv 2>/dev/null
}
flags=(--index-strategy unsafe-best-match)  # as pip
while read -r setting values; do  # pip's settings, which uv does not read
  case $setting in
    no-index) [[ $values != [Tt]rue && $values != 1 ]] || flags+=(--no-index) ;;
    cert) export SSL_CERT_FILE=$values ;;
    index-url) [[ " ${flags[*]} " == *' --index-url '* ]] || flags+=(--index-url "$values") ;;
    *) for value in $values; do flags+=("--$setting" "$value"); done ;;
  esac
done < <(pip config list 2>/dev/null | sed -nE "s/\\\\n/ /g; s/^.*\.(index-url|extra-index-url|find-links|no-index|trusted-host|cert)='(.*)'\$/\1 \2/p")
say "the packages of constraints.txt, ${index:+torch from $index, }by $([[ -x $uv ]] && echo uv || echo pip)"
with_uv() { "$uv" pip install --python "$venv/bin/python" "${flags[@]}" "$@" "${wanted[@]}" --editable '.[test]'; }
cpu_build() {  # a tenth of the CUDA build, where no driver is
  [[ -z $index && ! -e /proc/driver/nvidia ]] || return
  UV_HTTP_RETRIES=0 UV_HTTP_TIMEOUT=60 with_uv --torch-backend=cpu || { say "torch's own index does not do: from the ordinary one"; false; }
}
{ [[ -x $uv ]] && { cpu_build || with_uv; }; } || {
  [[ ! -x $uv ]] || say "not by uv, as it says: now by pip"
  pip install "${wanted[@]}" --editable '.[test]'
} || {
  pip install -vv --retries 0 --timeout 10 --dry-run --no-deps --ignore-installed "${wanted[@]}" setuptools 2>&1 |
    grep -qE 'connection error|ConnectionError|ConnectTimeout' &&
    fail "a package index does not answer${index:+ (PyPI, or TORCH_INDEX=$index)}: look at the network, its proxy and pip's settings (pip config list); the same command goes on"
  fail "the packages could not be installed, pip's last lines say why ($(df -Ph "$venv" | awk 'NR == 2 {print $4}') are free on this disk); the same command goes on"
}
rm -rf "$venv/setup.uv"
mv "$venv/setup.next" "$venv/setup.done"
say "done in $SECONDS s"
