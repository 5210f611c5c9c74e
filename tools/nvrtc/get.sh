#!/usr/bin/env bash
# Gets NVIDIA's run-time compiler, which needs neither a device nor a driver, into a folder: Debian's (11.8) and that of the Python wheels.
# Prints the libraries that it got, one a line, oldest first; says on standard error what cannot be had. It installs nothing.
set -uo pipefail
dir=$(mkdir -p "${1:?usage: get.sh FOLDER}" && cd "$1" && pwd)

debian() {
  [ -e "$dir"/debian/usr/lib/*/libnvrtc.so.11.2 ] && return
  command -v apt-get dpkg >/dev/null && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || return 1
  local release mirror
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk -v r="$release" '$2 == r { print $1; exit }') # the one that this machine uses
  [ -n "$mirror" ] || return 1
  mkdir -p "$dir"/apt/lists/partial "$dir"/apt/cache/archives/partial "$dir"/debian
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release non-free" >"$dir"/apt/sources.list
  local apt=(apt-get -qq -o Dir::Etc::sourcelist="$dir"/apt/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$dir"/apt/lists
    -o Dir::Cache="$dir"/apt/cache -o APT::Sandbox::User=root)
  (cd "$dir"/apt && "${apt[@]}" update && "${apt[@]}" download libnvrtc11.2 libnvrtc-builtins11.8) >&2 || return 1
  for p in "$dir"/apt/*.deb; do dpkg -x "$p" "$dir"/debian || return 1; done
}

wheel() {
  [ -e "$dir"/wheel/nvidia ] && return
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || return 1
  python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore --target "$dir"/wheel nvidia-cuda-nvrtc >&2
}

debian || echo "nvrtc: Debian's package cannot be had" >&2
wheel || echo "nvrtc: the Python wheel cannot be had" >&2
for lib in "$dir"/debian/usr/lib/*/libnvrtc.so.11.2 "$dir"/wheel/nvidia/*/lib/libnvrtc.so.1[0-9]; do
  [ -e "$lib" ] && echo "$lib"
done
exit 0
