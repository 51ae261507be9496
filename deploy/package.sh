#!/usr/bin/env bash
# Packs a built trimtab for people who install without a registry:
#   deploy/package.sh BINARY VERSION DIRECTORY
# prints the tarball's path. The same binary, version and commit give the same
# bytes, wherever and by whomever it is run: sorted names, one time for all
# files (SOURCE_DATE_EPOCH, or that of the commit), no owner.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: $0 BINARY VERSION DIRECTORY" >&2; exit 1; }
binary=$(realpath "$1") version=$2 out=$(realpath -m "$3")
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC
umask 022
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
name=trimtab-$version-linux-$(go env GOARCH)
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
top=$scratch/$name
mkdir -p "$top"/{systemd,completion,man,examples,docs,dashboards} "$out"

install -m 755 "$binary" "$top/trimtab"
host=${HOST_BINARY:-$top/trimtab} # where it is of another architecture
install -m 644 README.md CHANGELOG.md LICENSE NOTICE "$top/"
install -m 644 docs/*.md docs/*.png "$top/docs/"
[ ! -d docs/runbooks ] || cp -r docs/runbooks "$top/docs/"
find dashboards -maxdepth 2 -type f \( -name '*.json' -o -name '*.yml' -o -name '*.yaml' \) ! -name '*test*' -exec install -m 644 -t "$top/dashboards/" {} +
install -m 644 deploy/systemd/*.service "$top/systemd/"
find deploy/examples -maxdepth 1 -type f -exec install -m 644 -t "$top/examples/" {} +
"$host" completion bash >"$top/completion/trimtab.bash"
"$host" completion zsh >"$top/completion/_trimtab"
"$host" completion fish >"$top/completion/trimtab.fish"
"$host" man --date "$(date -u -d "@$epoch" +%F)" >"$top/man/trimtab.1"

tar --sort=name --format=gnu --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' -C "$scratch" -cf - "$name" |
  gzip -n -9 >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"
