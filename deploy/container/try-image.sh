#!/usr/bin/env bash
# Builds the image without an image registry and tries it: start, store a trace, kill -9, start again, verify, stop.
# Needs root, and Debian's packages buildah and debootstrap. The base image is made from Debian's packages and the Node.js of this checkout.
# Not tried here, since it needs a container engine: the read-only root file system, the health check on a schedule, and compose.yaml.
set -euo pipefail
cd "$(dirname "$0")/../.."
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
readonly base=localhost/tracetally-base image=localhost/tracetally port=4399
work=$(mktemp -d)
container=
server=
cleanUp() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  [ -z "$container" ] || buildah rm "$container" >/dev/null
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

# Starts the image's own command as its own user, and waits until it listens.
start() {
  buildah run --network host --env TRACETALLY_PORT=$port "$container" -- tracetally serve >"$work/out" 2>&1 &
  for _ in $(seq 300); do
    if curl -fsS "http://127.0.0.1:$port/healthz" >/dev/null 2>&1; then
      server=$(pgrep -f "^node /opt/tracetally/.*tracetally.js serve" -u 10001)
      return
    fi
    sleep 0.1
  done
  cat "$work/out"
  echo 'the service did not start'
  exit 1
}

buildah image exists "$base" 2>/dev/null || buildah images "$base" >/dev/null 2>&1 || makeBase
buildah bud -q --network host --format docker --build-arg NODE_IMAGE="$base" -t "$image" . >/dev/null
container=$(buildah from "$image")

start
key=$(grep -o 'tt_[0-9A-Za-z]*' "$work/out" | head -1)
ask() { curl -fsS -H "Authorization: Bearer $key" "$@"; }
ask -H 'Content-Type: application/json' -d '{"model":"m","cost_usd":0.25}' "http://127.0.0.1:$port/traces" >/dev/null
curl -fsS "http://127.0.0.1:$port/" | grep -q '<script type="module"'
kill -9 "$server"
wait || true
start
ask "http://127.0.0.1:$port/analytics/overview" | grep -q '"total_calls":1'
buildah run "$container" -- tracetally verify | tail -1
kill -TERM "$server"
wait
grep -q '"msg":"stopped"' "$work/out"
server=
echo 'the image was built, started, killed, started again with its data, verified and stopped'
