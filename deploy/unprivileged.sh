#!/usr/bin/env bash
# Runs the tests of the given packages as an unprivileged user, to show what
# works without root:
#   deploy/unprivileged.sh ./actuator/... ./collector/cgroup/...
# As root it builds the tests and runs them as nobody, four packages at a time;
# otherwise it runs them.
set -euo pipefail
if [ "$(id -u)" -ne 0 ]; then exec go test -count=1 "$@"; fi
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir "$scratch/src" "$scratch/tmp" "$scratch/tests"
tar --exclude=.git --exclude=bin -cf - . | tar -C "$scratch/src" -xf -
module=$(go list -m)
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@" | grep . >"$scratch/packages"
while read -r package; do
  go test -c -o "$scratch/src/${package#"$module"}/unprivileged.test" "$package"
done <"$scratch/packages"
chown -R nobody "$scratch/src" "$scratch/tmp"

# try PACKAGE: runs its tests and prints what they said once they have ended.
try() {
  local status=0
  cd "$scratch/src/${1#"$module"}"
  setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$scratch/tmp" TMPDIR="$scratch/tmp" \
    ./unprivileged.test >"$scratch/tests/${1//\//-}" 2>&1 || status=$?
  printf '%s as nobody: %s\n' "$1" "$(cat "$scratch/tests/${1//\//-}")"
  return $status
}
export -f try
export scratch module
xargs -P 4 -I '{}' bash -c 'try {}' <"$scratch/packages"
