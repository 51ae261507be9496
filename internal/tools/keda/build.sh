#!/bin/bash
# build.sh: keda-scaler, which asks an external scaler with KEDA's own code, into the cache
# of ../kube. The two files of KEDA's package of scalers that it needs are compiled from
# the module; the package as a whole brings the clients of 60 services.
set -euo pipefail
cd "$(dirname "$0")"
export GOGC=400 GOFLAGS="${GOFLAGS:-} -gcflags=all=-dwarf=false" # as ../kube/build.sh
keda=$(sed -n 's/^.*github.com\/kedacore\/keda\/v2 \(v[0-9.]*\)$/\1/p' go.mod)
out=${1:?where to}/keda-scaler-$keda
if [ ! -x "$out" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	cp go.mod go.sum main.go "$tmp"
	module=$(cd "$tmp" && go mod download -json "github.com/kedacore/keda/v2@$keda" | sed -n 's/^.*"Dir": "\(.*\)",$/\1/p')
	mkdir "$tmp/scalers"
	install -m 644 "$module"/pkg/scalers/{external_scaler,scaler}.go "$tmp/scalers"
	printf 'package scalers\n\nconst externalMetricType = "External"\n' >"$tmp/scalers/type.go" # it is in another file there
	(cd "$tmp" && CGO_ENABLED=0 nice -n 15 go build -trimpath -ldflags="-s -w" -o "$out" .)
fi
ln -sf "${out##*/}" "${out%/*}/keda-scaler"
