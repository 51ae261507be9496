#!/usr/bin/env bash
# Installs a built trimtab, or removes what it installed and nothing else:
#   deploy/install.sh install|uninstall [BINARY]
# PREFIX (/usr/local) is where everything goes, DESTDIR (empty) stands before every
# path, as in GNU's conventions. HOST_BINARY prints completions and the manual where
# BINARY is of another architecture. Data and configuration are not touched.
set -euo pipefail
action=${1:-} binary=$(realpath -m "${2:-bin/trimtab}") prefix=${PREFIX:-/usr/local} root=${DESTDIR:-}
host=$(realpath -m "${HOST_BINARY:-$binary}")
case $action in install | uninstall) ;; *) echo "usage: $0 install|uninstall [BINARY]" >&2; exit 1 ;; esac
cd "$(dirname "$0")/.."
umask 022
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
doc=$prefix/share/doc/trimtab

# put MODE SOURCE TARGET: one file.
put() {
  if [ "$action" = uninstall ]; then rm -f "$root$3"; else install -D -m "$1" "$2" "$root$3"; fi
}

# made NAME COMMAND...: a file that the program prints itself.
made() {
  local name=$1; shift
  [ "$action" = uninstall ] || "$host" "$@" >"$scratch/$name"
}

made bash completion bash
made zsh completion zsh
made fish completion fish
made man man --date "$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" +%F)"
[ "$action" = uninstall ] || gzip -n -9 "$scratch/man"
zsh=$prefix/share/zsh/site-functions
[ "$prefix" != /usr ] || zsh=/usr/share/zsh/vendor-completions # Debian's place for packages

put 755 "$binary" "$prefix/bin/trimtab"
for unit in deploy/systemd/*.service; do
  sed "s#/usr/bin/trimtab#$prefix/bin/trimtab#" "$unit" >"$scratch/unit"
  put 644 "$scratch/unit" "$prefix/lib/systemd/system/${unit##*/}"
done
put 644 "$scratch/man.gz" "$prefix/share/man/man1/trimtab.1.gz"
put 644 "$scratch/bash" "$prefix/share/bash-completion/completions/trimtab"
put 644 "$scratch/zsh" "$zsh/_trimtab"
put 644 "$scratch/fish" "$prefix/share/fish/vendor_completions.d/trimtab.fish"
for f in README.md CHANGELOG.md LICENSE NOTICE docs/*.md docs/*.png docs/runbooks/*.md; do put 644 "$f" "$doc/$f"; done
for f in deploy/examples/*.{yml,yaml,md}; do put 644 "$f" "$doc/examples/${f##*/}"; done
for f in dashboards/*.json dashboards/rules/*.rules.yaml; do put 644 "$f" "$prefix/share/trimtab/${f/dashboards\/rules/rules}"; done

if [ "$action" = uninstall ]; then
  for dir in "$root$doc" "$root$prefix/share/trimtab"; do
    [ ! -d "$dir" ] || find "$dir" -depth -type d -empty -delete
  done
else
  echo "installed below $root$prefix; next: systemctl daemon-reload; systemctl start trimtab-watch"
fi
