#!/usr/bin/env bash
# Runs the runtime steps of docker/Dockerfile in a debootstrap tree, for machines without Docker:
# installs the packages, adds the user, installs the binary, starts the server as that user, waits
# for the health check to answer, and stops the server with SIGTERM.
#
# Usage (as root): docker/try-in-debootstrap.sh [BINARY]
#   BINARY  tambourd from the build stage; built here by default
#   MIRROR  a Debian mirror (environment variable; default: the mirror that apt uses here)
set -euo pipefail
binary=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."

mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' | head -n 1)}
dockerfile=docker/Dockerfile

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

((EUID == 0)) || fail "debootstrap and chroot need root"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

if [[ -z $binary ]]; then
    swift build -c release --static-swift-stdlib --traits Jemalloc,TLS --product tambourd --scratch-path .build/static
    binary=.build/static/release/tambourd
fi
[[ -x $binary ]] || fail "$binary is not executable"

tree=$(mktemp -d "${TMPDIR:-/tmp}/tambour-image.XXXXXX")
chmod 0755 "$tree"
server=
clean_up() {
    if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
    umount "$tree/proc" 2>/dev/null || true
    rm -rf --one-file-system "$tree"
}
trap clean_up EXIT

# Prints the steps after the last FROM, one per line, with continuation lines joined and comments removed.
steps() {
    sed -e '/^[[:space:]]*#/d' "$dockerfile" |
        sed -e ':join' -e '/\\$/N; s/\\\n[[:space:]]*//; t join' |
        awk '/^FROM /{ kept = "" } { kept = kept $0 "\n" } END { printf "%s", kept }'
}

# Prints a JSON list of words, one per line.
words() { python3 -c 'import json, sys; print("\n".join(json.loads(sys.argv[1])))' "$1"; }

user=root
directory=/
entrypoint=()
command=()
health=()

# Executes WORD... as the image's user, in its directory, with a clean environment.
enter_tree() {
    exec chroot --userspec="$user:" "$tree" /usr/bin/env -i \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive \
        /bin/sh -c 'cd "$0" && exec "$@"' "$directory" "$@"
}

in_tree() { (enter_tree "$@"); }

while read -r instruction rest; do
    [[ -n $instruction ]] || continue
    printf -- '--> %s %s\n' "$instruction" "$rest"
    case $instruction in
    FROM)
        [[ $rest == debian:12-slim ]] || fail "unsupported base image: $rest"
        debootstrap --variant=minbase bookworm "$tree" "$mirror" >"$tree.log" 2>&1 ||
            fail "debootstrap: $(tail -n 3 "$tree.log")"
        rm -f "$tree.log"
        mount -t proc proc "$tree/proc" 2>/dev/null || true
        cp /etc/resolv.conf "$tree/etc/resolv.conf"
        # The host's access to its mirror (such as a proxy) is not a step of the image.
        cp -r /etc/apt/apt.conf.d/. "$tree/etc/apt/apt.conf.d/"
        ;;
    RUN) in_tree /bin/sh -c "$rest" ;;
    COPY)
        read -r from source target <<<"$rest"
        [[ $from == --from=build && $source == */tambourd ]] || fail "unsupported COPY: $rest"
        install -D -m 0755 "$binary" "$tree$target"
        ;;
    USER) user=$rest ;;
    WORKDIR)
        directory=$rest
        [[ -d $tree$directory ]] || fail "the directory $directory is missing"
        ;;
    VOLUME) [[ -d $tree$rest ]] || fail "the volume $rest is not a directory" ;;
    EXPOSE) port=$rest ;;
    HEALTHCHECK) mapfile -t health < <(words "${rest#*CMD }") ;;
    ENTRYPOINT) mapfile -t entrypoint < <(words "$rest") ;;
    CMD) mapfile -t command < <(words "$rest") ;;
    *) fail "unsupported instruction: $instruction" ;;
    esac
done < <(steps)

missing=$(chroot "$tree" ldd "/usr/local/bin/tambourd" | grep 'not found' || true)
[[ -z $missing ]] || fail "libraries are missing in the image: $missing"

# The port may be in use on this host; a container has its own network.
for index in "${!command[@]}"; do
    if [[ ${command[index]} == "0.0.0.0:$port" ]]; then command[index]=127.0.0.1:0; fi
done

output=$tree/tmp/output
enter_tree "${entrypoint[@]}" "${command[@]}" >"$output" 2>"$output.errors" &
server=$!
for attempt in $(seq 100); do
    if grep -q '^listening tcp ' "$output"; then break; fi
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$output.errors")"
    sleep 0.1
done
grep '^listening tcp ' "$output" || fail "the server does not listen: $(cat "$output.errors")"

owner=$(stat -c %u "/proc/$server")
((owner != 0)) || fail "the server runs as root"
echo "the server runs as user $owner"

in_tree "${health[@]}" >"$tree/tmp/health" || fail "the health check failed"
echo "the health check printed $(wc -l <"$tree/tmp/health") lines"

kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
((status == 0)) || fail "the server exited with $status after SIGTERM"
echo "the server stopped cleanly; the image works"
