#!/usr/bin/env bash
# Makes what a release consists of, for amd64 and arm64, without root or a daemon:
#   deploy/release.sh VERSION DIRECTORY [deb|image]...
# Without a kind: static binaries in tarballs, Debian packages, one OCI image, an SBOM
# (CycloneDX) of each binary, release notes and checksums. The same commit and the
# same Go give the same bytes. ARCHES names other architectures; BINARIES has built
# binaries as ARCH/trimtab.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 VERSION DIRECTORY [deb|image]..." >&2; exit 1; }
version=$1 out=$(realpath -m "$2") kinds=" ${*:3} "
cd "$(dirname "$0")/.."
read -ra arches <<<"${ARCHES:-amd64 arm64}"
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"

wants() { [ "$kinds" = "  " ] || [[ $kinds == *" $1 "* ]]; }

for arch in "${arches[@]}"; do
  mkdir -p "$scratch/$arch"
  [ -z "${BINARIES:-}" ] || { cp "$BINARIES/$arch/trimtab" "$scratch/$arch/"; continue; }
  CGO_ENABLED=0 GOARCH=$arch go build -trimpath -ldflags '-s -w -funcalign=16' -o "$scratch/$arch/trimtab" ./cmd/trimtab
done
export HOST_BINARY=$scratch/$(go env GOHOSTARCH)/trimtab
if [ ! -x "$HOST_BINARY" ]; then
  HOST_BINARY=$scratch/host
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -funcalign=16' -o "$HOST_BINARY" ./cmd/trimtab
fi

# deb ARCH: a package with the files that `make install PREFIX=/usr` installs.
deb() {
  local stage=$scratch/stage-$1
  PREFIX=/usr DESTDIR=$stage ./deploy/install.sh install "$scratch/$1/trimtab" >/dev/null
  rm "$stage/usr/share/doc/trimtab/LICENSE"
  sed 's#^$#.#; s#^#  #' NOTICE | cat deploy/debian/copyright - >"$stage/usr/share/doc/trimtab/copyright"
  printf 'trimtab (%s) stable; urgency=medium\n\n  * CHANGELOG.md has every change.\n\n -- %s  %s\n' "$version" \
    "$(sed -n 's/^maintainer: //p' deploy/debian/nfpm.yaml)" "$(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")" |
    gzip -n -9 >"$stage/usr/share/doc/trimtab/changelog.gz"
  chmod -R u=rwX,go=rX "$stage"
  find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  ARCH=$1 VERSION=$version STAGE=$stage go run "$NFPM" package --config deploy/debian/nfpm.yaml --packager deb --target "$out/trimtab_${version}_$1.deb" >/dev/null
  echo "$out/trimtab_${version}_$1.deb"
}

for arch in "${arches[@]}"; do
  if wants deb; then deb "$arch"; fi
  [ "$kinds" = "  " ] || continue
  GOARCH=$arch ./deploy/package.sh "$scratch/$arch/trimtab" "$version" "$out"
  go run "$SBOM" bin -json -noserial -notimestamp -version "v$version" -output "$out/trimtab_${version}_$arch.cdx.json" "$scratch/$arch/trimtab"
  echo "$out/trimtab_${version}_$arch.cdx.json"
done
if wants image; then
  args=(); for arch in "${arches[@]}"; do args+=("$arch=$scratch/$arch/trimtab"); done
  go run ./internal/tools/image --version "$version" --epoch "$SOURCE_DATE_EPOCH" --out "$out/trimtab_$version.oci.tar" "${args[@]}"
  echo "$out/trimtab_$version.oci.tar"
fi
[ "$kinds" = "  " ] || exit 0
cp docs/release-notes.md "$out/RELEASE-NOTES.md"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS)
echo "$out/SHA256SUMS"
