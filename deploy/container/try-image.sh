#!/usr/bin/env bash
# Builds the image without an image registry and tries it with Podman, with the options of compose.yaml: start, first key, store a trace,
# health check, kill -9, a new container on the same volume, verify, stop.
# Needs root, and Debian's packages podman, crun, buildah and debootstrap. The base image is made from Debian's packages and the Node.js of this
# checkout; it is kept for the next run.
# Not tried here: the base image of the Dockerfile, the schedule of the health check, which needs systemd or Docker, and published ports.
set -euo pipefail
cd "$(dirname "$0")/../.."
# crun refuses hybrid cgroups. They are not needed, so they are hidden in a mount namespace of this script.
if mountpoint -q /sys/fs/cgroup/unified; then
  exec unshare --mount sh -c 'umount /sys/fs/cgroup/unified && exec "$0"' "./deploy/container/try-image.sh"
fi
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
readonly base=localhost/tracetally-base image=localhost/tracetally port=4399
readonly name=tracetally-try-$$
readonly url=http://127.0.0.1:$port
work=$(mktemp -d)
cleanUp() {
  podman rm --force --time 0 "$name" >/dev/null 2>&1 || true
  podman volume rm "$name" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanUp EXIT

makeBase() {
  debootstrap --variant=minbase --include=ca-certificates,libatomic1,libstdc++6 bookworm "$work/base" >/dev/null
  local npm
  npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
  mkdir -p "$work/base/usr/local/lib/node_modules"
  cp "$(readlink -f node_modules/.bin/node)" "$work/base/usr/local/bin/node"
  cp -r "$npm" "$work/base/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/base/usr/local/bin/npm"
  # The certificates that this machine trusts.
  cp /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/"
  echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >"$work/base/root/.npmrc"
  local new
  new=$(buildah from scratch)
  buildah add -q "$new" "$work/base" / >/dev/null
  buildah config --env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$new"
  buildah commit -q "$new" "$base" >/dev/null
  buildah rm "$new" >/dev/null
}

fail() {
  echo "$1" >&2
  podman logs "$name" >&2 || true
  exit 1
}

# Starts a new container of the image's own command and user, and waits until it is healthy.
start() {
  podman run --detach --name "$name" --volume "$name:/data" \
    --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges \
    --network host --env TRACETALLY_HOST=127.0.0.1 --env TRACETALLY_PORT=$port \
    --cgroups disabled --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 "$image" >/dev/null 2>"$work/errors" ||
    fail "$(cat "$work/errors")"
  for _ in $(seq 300); do
    if podman healthcheck run "$name" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail 'The container did not become healthy.'
}

remove() { podman rm "$name" >/dev/null 2>&1; }

buildah images "$base" >/dev/null 2>&1 || makeBase
buildah bud -q --network host --format docker --build-arg NODE_IMAGE="$base" -t "$image" . >/dev/null
podman volume create "$name" >/dev/null

start
key=$(podman logs "$name" 2>&1 | grep -o 'tt_[0-9A-Za-z]*' | head -1)
ask() { curl -fsS -H "Authorization: Bearer $key" "$@"; }
ask -H 'Content-Type: application/json' -d '{"model":"m","cost_usd":0.25}' "$url/traces" >/dev/null
curl -fsS "$url/" | grep -q '<script type="module"' || fail 'There is no dashboard.'
[ "$(podman exec "$name" id -u)" = 10001 ] || fail 'The service runs as another user.'
for folder in / /opt/tracetally /etc; do
  if podman exec --user 0 "$name" touch "$folder/written" 2>/dev/null; then fail "$folder can be written."; fi
done
# Not grep -q, which would end the program before it has printed everything.
podman exec --env NODE_DEBUG_NATIVE=COMPILE_CACHE "$name" tracetally --version 2>&1 | grep 'was accepted' >/dev/null ||
  fail 'The compiled code in the image is not used.'

podman kill --signal KILL "$name" >/dev/null
podman wait "$name" >/dev/null
remove
start
ask "$url/analytics/overview" | grep -q '"total_calls":1' || fail 'The trace is lost.'
podman exec "$name" tracetally verify | tail -1
podman exec "$name" tracetally keys create --team search >/dev/null 2>&1
# Without systemd, Podman complains about the schedule of the health check.
podman stop --time 30 "$name" >/dev/null 2>&1
[ "$(podman wait "$name")" = 0 ] || fail 'The service did not stop by itself.'
podman logs "$name" 2>&1 | grep -q '"msg":"stopped"' || fail 'The service was killed.'
podman image inspect --format 'The image has {{.Size}} bytes.' "$image"
echo 'It was built, started, checked, killed, started again with its data, verified and stopped.'
