#!/usr/bin/env bash
# Makes the release twice from the commit that is checked out: in two clones at
# different places, each with an empty build cache, under another time zone, locale
# and umask. Prints the checksums, and fails where a byte differs:
#   deploy/reproducible.sh VERSION
set -euo pipefail
top=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d); trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

# once NAME ZONE UMASK: one release, with its checksums in scratch/NAME.sums.
once() {
  git clone -q "$top" "$scratch/$1/trimtab"
  git -C "$scratch/$1/trimtab" checkout -q "$commit" # somebody may commit while the first is made
  (umask "$3"; cd "$scratch/$1/trimtab"; GOCACHE=$scratch/$1/cache TZ=$2 ./deploy/release.sh "$version" dist >&2)
  cp "$scratch/$1/trimtab/dist/SHA256SUMS" "$scratch/$1.sums"
  rm -rf "$scratch/$1/cache"
}

version=$1
commit=$(git -C "$top" rev-parse HEAD)
once first UTC 022
once a-second-place Asia/Tokyo 077
diff "$scratch/first.sums" "$scratch/a-second-place.sums"
cat "$scratch/first.sums"
echo "both releases have the same bytes"
