#!/usr/bin/env bash
# Runs tests in the guest of guest.sh, where nothing that needs groups of version
# 2 or systemd is skipped, and prints how many ran:
#   deploy/guest-tests.sh short   knobs, collector and files of groups; units of systemd
#   deploy/guest-tests.sh         these; knobs on the newest kernel of Debian; memory limits between rounds, and a probe; the actuator with its watchdogs; tasks; the demo
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-whole}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

# build PACKAGE...: the tests that the next guest has, and nothing else. With -trimpath and without
# cgo they find in the build cache what `make build` has compiled. The first may be a flag of the build.
build() {
  local flag=
  case $1 in -*) flag=$1; shift ;; esac
  rm -rf "$work/root"; mkdir -p "$work/root/tests"
  for package in "$@"; do CGO_ENABLED=0 go test -c $flag -trimpath -ldflags '-s -w' -o "$work/root/tests/${package//\//-}" "./$package"; done
}

# inside NAME [OPTION]... COMMAND: runs the command in the guest, where `try PACKAGE
# [FLAG]...` runs tests, and says what came of it.
inside() {
  local name=$1 status=0 started=$SECONDS
  shift
  ./deploy/guest.sh --dir "$work/root" "${@:1:$#-1}" "
    export TRIMTAB_GUEST='$name'; cd /tests
    try() { test=\$1; shift; ./\$test -test.v -test.timeout 15m \"\$@\" || failed=1; }
    failed=0; ${*: -1}; exit \$failed" >"$work/output" || status=$?
  [ $status = 0 ] || cat "$work/output"
  echo "guest, $name: $(grep -c '^--- PASS' "$work/output") tests passed, $(grep -c '^--- SKIP' "$work/output") skipped," \
    "$(grep -c '^--- FAIL' "$work/output") failed, $((SECONDS - started)) s"
  return $status
}

build actuator/cgroup actuator/cpuset actuator/freezer collector/cgroup internal/hostfs
inside "cgroups of version 2" 'try actuator-cgroup; try actuator-cpuset; try actuator-freezer; try collector-cgroup; try internal-hostfs'
inside 'hardware threads' --threads 'try actuator-cpuset -test.run Threads'
inside systemd --systemd 'try actuator-cgroup -test.run Systemd; try actuator-cpuset -test.run Systemd'
[ "$part" = short ] && exit
inside 'cgroups of version 2, the newest kernel' --newest 'uname -r; try actuator-cgroup; try actuator-cpuset; try actuator-freezer; try collector-cgroup; try internal-hostfs'
build -tags=integration agent/grow
inside 'memory limits between rounds' 'try agent-grow -test.run "Killed|Slowed"'
inside 'a probe of memory' --swap 'try agent-grow -test.run Probe'
build actuator actuator/task
inside watchdogs 'try actuator'
inside tasks 'try actuator-task -test.run "^Test"'
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/root/bin/trimtab" ./cmd/trimtab
inside demo 'trimtab demo --headless --for 60s || failed=1'
