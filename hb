#!/bin/sh
# Makes .venv from the lock file on first use, then hands over to the hb command in it.
#   ./hb --help        what it can do
#   ./hb demo          run it        ./hb test    run its tests
# HB_PYTHON names the Python to use; HB_VENV a folder for the environment (default: .venv here).
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
venv=${HB_VENV:-$root/.venv}

say() { printf 'hb: %s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

# Three layers, each with all that is in the one before it: what a worker needs is enough for most
# commands; some may start the embedded broker or draw; tests, checks and experiments need most.
case "${1:-}" in
    test | check | dashboards | docs | experiments | screenshots) layer=dev ;;
    bench | broker | demo | fuzz | plan | up) layer=run ;;
    *) layer=worker ;;
esac
case "$*" in
    # It draws with what the experiments draw with.
    plan\ *--plot*) layer=dev ;;
    # The example data come with scikit-learn.
    init\ *--dataset* | produce\ *--dataset*) layer=run ;;
esac
# The other two include what it takes to install the project itself.
locks_of() { case "$1" in worker) echo worker build ;; *) echo "$1" ;; esac; }

stamp_of() {
    for lock in $(locks_of "$1"); do cksum <"$root/requirements/$lock.lock"; done
    cksum <"$root/pyproject.toml"
}
stamped() { [ -f "$venv/.hb-$1" ] && [ "$(cat "$venv/.hb-$1")" = "$(stamp_of "$1")" ]; }
ready() {
    case "$layer" in
        worker) stamped worker || stamped run || stamped dev ;;
        run) stamped run || stamped dev ;;
        dev) stamped dev ;;
    esac
}

# Prints a Python that the locked packages are made for; `pyproject.toml` says which those are.
find_python() {
    bounds=$(sed -n 's/^requires-python = ">=3\.\([0-9]*\),<3\.\([0-9]*\)"$/\1 \2/p' "$root/pyproject.toml")
    oldest=${bounds% *} limit=${bounds#* } too_new=
    for python in ${HB_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        minor=$("$python" -c 'import sys; print(sys.version_info[1] * (sys.version_info[0] == 3))' 2>/dev/null) ||
            continue
        if [ "$minor" -ge "$limit" ]; then
            too_new="$python is Python 3.$minor, and the locked packages are made for 3.$oldest to 3.$((limit - 1))"
        elif [ "$minor" -ge "$oldest" ]; then
            [ -z "$too_new" ] || say "$too_new; using $python"
            printf '%s\n' "$python"
            return
        fi
    done
    hint="install one, or name it with HB_PYTHON=/path/to/python3"
    [ -z "$too_new" ] || die "$too_new; $hint"
    die "needs Python 3.$oldest or later, and found none here; $hint"
}

# One set-up at a time; a lock left by a set-up that died is taken over.
take_lock() {
    mkdir -p "$(dirname -- "$venv")"
    until mkdir "$venv.lock" 2>/dev/null; do
        owner=$(cat "$venv.lock/pid" 2>/dev/null || :)
        if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
            rm -rf "$venv.lock"
        else
            say "another set-up is at work on $venv; waiting (remove $venv.lock if there is none)"
            sleep 2
        fi
    done
    echo $$ >"$venv.lock/pid"
    trap 'rm -rf "$venv.lock"' EXIT
    trap 'exit 130' INT TERM
}

# Each step is asked how it went, because `set -e` is off in a function whose result is asked for.
install_with_uv() {
    [ -x "$venv/bin/python" ] || uv venv --quiet --python "$1" "$venv" || return 1
    for lock in $(locks_of "$layer"); do
        uv pip install --python "$venv/bin/python" --no-deps --require-hashes \
            -r "$root/requirements/$lock.lock" >&2 || return 1
    done
    uv pip install --python "$venv/bin/python" --quiet --no-deps --no-build-isolation \
        -e "$root" >&2
}

install_with_pip() {
    [ -x "$venv/bin/pip" ] || "$1" -m venv --clear "$venv" ||
        die "could not make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
    set -- "$venv/bin/python" -m pip --disable-pip-version-check install
    rm -f "$venv/.failed"
    # The locks name every package; older pips resolve extras past their pins when they may look.
    for lock in $(locks_of "$layer"); do
        "$@" --no-deps --require-hashes -r "$root/requirements/$lock.lock" || : >"$venv/.failed"
    done |
        awk '/^Collecting /   { n++; if (n % 10 == 0) printf "hb: %d packages found\n", n }
             /^  *Downloading / { print "hb: downloading " $2 " " $3 " " $4 }
             /^Installing collected/ { print "hb: installing " n " packages" }' >&2
    [ ! -e "$venv/.failed" ] || return 1
    "$@" --quiet --no-deps --no-build-isolation -e "$root" >&2
}

set_up() {
    python=$(find_python) || exit 3
    take_lock
    ready && return
    count=$(for lock in $(locks_of "$layer"); do cat "$root/requirements/$lock.lock"; done |
        awk '/^[^ ]*==/ { n++ } END { print n + 0 }')
    say "setting up $venv: $count packages of requirements/$layer.lock (once; later uses start at once)"
    if command -v uv >/dev/null 2>&1 && [ -z "${HB_NO_UV:-}" ]; then
        install_with_uv "$python" || die "the set-up failed; the lines above say why"
    else
        install_with_pip "$python" || die "the set-up failed; the lines above say why"
    fi
    [ -x "$venv/bin/hb" ] || die "the set-up failed; the lines above say why"
    rm -f "$venv/.hb-worker" "$venv/.hb-run" "$venv/.hb-dev"
    stamp_of "$layer" >"$venv/.hb-$layer"
}

if ! ready; then
    (set_up) || exit $?
fi
exec "$venv/bin/hb" "$@"
