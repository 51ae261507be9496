#!/usr/bin/env bash
# Runs the tests of the given packages as an unprivileged user, to show what
# works without root:
#   deploy/unprivileged.sh ./actuator/... ./collector/cgroup/...
# As root it builds the tests and runs them as nobody; otherwise it runs them.
set -euo pipefail
if [ "$(id -u)" -ne 0 ]; then exec go test -count=1 "$@"; fi
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir "$scratch/src" "$scratch/tmp"
tar --exclude=.git --exclude=bin -cf - . | tar -C "$scratch/src" -xf -
module=$(go list -m)
for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@"); do
  dir=$scratch/src/${package#"$module"}
  go test -c -o "$dir/unprivileged.test" "$package"
  chown -R nobody "$scratch/src" "$scratch/tmp"
  printf '%s as nobody: ' "$package"
  (cd "$dir" && setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$scratch/tmp" TMPDIR="$scratch/tmp" ./unprivileged.test)
done
