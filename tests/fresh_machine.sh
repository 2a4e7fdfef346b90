#!/usr/bin/env bash
# `make fresh`: run the committed HEAD on a machine that has nothing but python3, venv and make: no compiler, no
# browser, no fonts; SIGINT is ignored as in a background job.
#
#   make fresh                                   make quickstart in a bare Debian
#   make fresh CMD="make test" BARE=gcc,chromium another command, and more Debian packages
#   make fresh VARIANT=user                      an ordinary user with a read-only source: pip install, quickstart
#   make fresh VARIANT=ascii|homeless|path       LC_ALL=C; HOME unset; a path with spaces and Chinese characters
#
# A chroot by debootstrap (root on Debian; its base is made once, in /var/tmp/manyheads-fresh), else docker or podman.
# Packages come from where this machine's apt and pip take them.
set -euo pipefail
export VARIANT=${VARIANT:-} BARE=${BARE:-} CMD=${CMD:-}
packages=python3,python3-venv,make,ca-certificates
as_user='python3 -m venv venv && venv/bin/pip install -qq --constraint $SOURCE/constraints.txt torch $SOURCE &&
  venv/bin/manyheads quickstart'

inside() { # as root, on the fresh machine
  if [ -e /fresh/install ]; then
    local names && IFS=, read -ra names < /fresh/install
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${names[@]}" > /dev/null
  fi
  [ ! -e /fresh/pip.conf ] || install -D -m 644 /fresh/pip.conf /etc/xdg/pip/pip.conf
  export SOURCE=/srv/manyheads
  [ "$VARIANT" != path ] || SOURCE="/srv/my project 多头/manyheads"
  mkdir -p "$SOURCE" && tar -xf /fresh/project.tar -C "$SOURCE" && cd "$SOURCE"
  local command=${CMD:-make quickstart}
  [ "$VARIANT" != user ] || command=${CMD:-$as_user}
  local run=(bash -c "$command")
  case $VARIANT in
    ascii) run=(env LC_ALL=C "${run[@]}") ;;
    homeless) run=(env -u HOME "${run[@]}") ;;
    user)
      useradd --create-home guest && chmod -R a-w "$SOURCE" && cd /home/guest
      run=(runuser -u guest -- env HOME=/home/guest "${run[@]}") ;;
  esac
  echo "fresh machine: Debian $(cat /etc/debian_version), $(python3 --version), commit $COMMIT${VARIANT:+, $VARIANT}"
  export -n VARIANT BARE CMD COMMIT
  local start=$SECONDS code=0
  "${run[@]}" < /dev/null || code=$?
  echo "fresh machine: exit $code after $((SECONDS - start)) s"
  return $code
}

mounted() { # in a namespace of its own: these mounts and all processes end with it, and this machine never sees them
  mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev"
  while read -r folder; do # local folders that pip's settings name; an index in `simple` has its files beside it
    mkdir -p "$1$folder" && mount --bind "$folder" "$1$folder" && mount -o remount,ro,bind "$1$folder"
  done < "$1/fresh/folders"
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
    "${@:2}" chroot "$1" bash /fresh/fresh_machine.sh inside
}

case ${1:-} in inside | mounted) "$@"; exit ;; esac
case $VARIANT in
  "" | user | ascii | homeless | path) ;;
  *) echo "make fresh: there is no VARIANT=$VARIANT. Use user, ascii, homeless or path." >&2; exit 2 ;;
esac
suite=$(. /etc/os-release 2> /dev/null && [ "$ID" = debian ] && echo "$VERSION_CODENAME" || true)
if [ "$(id -u)" = 0 ] && [ -n "$suite" ] && command -v debootstrap > /dev/null; then container=
elif container=$(command -v docker) && "$container" info > /dev/null 2>&1; then :
elif container=$(command -v podman); then :
else
  echo "make fresh needs root and debootstrap on Debian (apt install debootstrap), or a running docker, or podman." >&2
  exit 1
fi

work=/var/tmp/manyheads-fresh
[ -z "$container" ] || work=${TMPDIR:-/tmp}
mkdir -p "$work"
root=$(mktemp -d "$work/run-XXXXXX")
child=
leave() {
  if [ -n "$child" ]; then # --kill-child ends all that runs under unshare; docker passes a signal on unless it is KILL
    { kill "-$([ -z "$container" ] && echo KILL || echo TERM)" "$child" && wait "$child" || true; } 2> /dev/null
  fi
  if grep -qF " $root/" /proc/self/mountinfo; then echo "make fresh: $root has mounts, so it is not deleted." >&2
  else rm -rf --one-file-system "$root"; fi
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

kept=(VARIANT="$VARIANT" BARE="$BARE" CMD="$CMD" COMMIT="$(git rev-parse --short HEAD)")
variables='PIP_|https?_proxy=|no_proxy=|HTTPS?_PROXY=|NO_PROXY='
# A container has certificates of its own.
[ -n "$container" ] || variables+='|SSL_CERT_|REQUESTS_CA_BUNDLE=|CURL_CA_BUNDLE='
while IFS= read -r one; do
  [ -n "$container" ] && [[ $one = PIP_CERT=* ]] || kept+=("$one")
done < <(env | grep -E "^($variables)")

if [ -z "$container" ]; then
  exec 9> "$work/lock" && flock 9
  if [ ! -d "$work/$suite" ]; then
    echo "make fresh: making a bare Debian $suite in $work (once)"
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
      awk -v suite="$suite" '$2 == suite { print $1; exit }')
    debootstrap --variant=minbase --include="$packages" "$suite" "$root/base" "$mirror" > "$work/log" 2>&1 ||
      { tail -n 3 "$work/log" >&2; exit 1; }
    mv "$root/base" "$work/$suite"
  fi
  flock -u 9
  cp -a "$work/$suite/." "$root"
  rm "$root/etc/apt/sources.list" # this machine's own follow
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  cp -aL --remove-destination /etc/ssl/certs/. "$root/etc/ssl/certs/"
  for one in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /usr/share/keyrings /etc/pip.conf; do
    [ ! -e "$one" ] || cp -aT "$one" "$root$one"
  done
  packages=$BARE
else
  packages=$packages${BARE:+,$BARE}
fi
mkdir "$root/fresh"
[ -z "$packages" ] || echo "$packages" > "$root/fresh/install"
cp "$0" "$root/fresh/fresh_machine.sh"
git archive HEAD > "$root/fresh/project.tar"
for one in /etc/pip.conf ~/.pip/pip.conf ~/.config/pip/pip.conf; do
  [ ! -e "$one" ] || cp "$one" "$root/fresh/pip.conf"
done
{ python3 -m pip config list 2> /dev/null | grep -oE "/[^ '/][^ ']*" || true; } | sed 's#/simple$##' | sort -u |
  while read -r one; do [ ! -d "$one" ] || echo "$one"; done > "$root/fresh/folders"

# In the background, so that a signal ends it at once and that SIGINT is ignored inside.
if [ -z "$container" ]; then
  unshare --mount --pid --fork --kill-child bash "$0" mounted "$root" "${kept[@]}" &
else
  arguments=(--rm --init --volume "$root/fresh:/fresh:ro" --env LANG=C.UTF-8)
  for one in "${kept[@]}"; do arguments+=(--env "$one"); done
  while read -r one; do arguments+=(--volume "$one:$one:ro"); done < "$root/fresh/folders"
  "$container" run "${arguments[@]}" debian:stable-slim bash /fresh/fresh_machine.sh inside &
fi
child=$!
code=0
wait "$child" || code=$?
child=
exit $code
