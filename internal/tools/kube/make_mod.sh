#!/bin/bash
# make_mod.sh VERSION: rewrites go.mod for another release of Kubernetes.
# k8s.io/kubernetes requires its staging repositories at v0.0.0; each is replaced
# by the release that belongs to it, v1.X.Y -> v0.X.Y.
set -euo pipefail
version=$1
cd "$(dirname "$0")"
rm -f go.mod go.sum
printf 'module github.com/trimtab/trimtab/internal/tools/kube\n\ngo 1.26.0\n' >go.mod
mod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
	printf 'module github.com/trimtab/trimtab/internal/tools/kube\n\n'
	grep '^go ' "$mod"
	printf '\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$version"
	sed -n 's/^[[:space:]]*\(require \)\{0,1\}\(k8s.io\/[a-z-]*\) v0\.0\.0\( .*\)\{0,1\}$/\2/p; s/^[[:space:]]*\(k8s.io\/[a-z-]*\) => .*/\1/p' "$mod" | sort -u |
		while read -r r; do echo "	$r => $r v0.${version#v1.}"; done
	echo ')'
} >go.mod
go mod tidy
