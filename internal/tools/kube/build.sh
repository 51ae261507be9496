#!/bin/bash
# build.sh: what the tests against a real cluster need, into a cache keyed by version:
#   kube             API server, controller manager, scheduler, kubelet, kubectl (8 minutes of two cores)
#   helm             to render and install the chart (3 minutes)
#   kwok             plays the kubelets of many nodes (2 minutes)
#   vpa-crd.yaml     the kind VerticalPodAutoscaler
#   debian/          etcd, containerd, runc and CNI of Debian, unpacked and not installed
# It prints the directory. CACHE overrides ~/.cache/trimtab-kube.
set -euo pipefail
cd "$(dirname "$0")"
# Nobody looks at these programs with a debugger: without tables for it, and with rare
# collections of garbage, the compiler takes less.
export GOGC=400 GOFLAGS="${GOFLAGS:-} -gcflags=all=-dwarf=false"
version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' go.mod)
dir=${CACHE:-$HOME/.cache/trimtab-kube}/$version
debian=$dir/debian
mkdir -p "$debian"
if [ ! -x "$debian/usr/bin/etcd" ]; then
	(cd "$dir" && for p in containerd runc etcd-server containernetworking-plugins libseccomp2; do
		apt-get download -qq "$p" && dpkg -x "${p}"_*.deb "$debian" && rm "${p}"_*.deb
	done) >&2
fi
if [ ! -x "$dir/kube" ]; then
	at=k8s.io/component-base/version
	minor=$(echo "$version" | cut -d. -f2)
	CGO_ENABLED=0 nice -n 15 go build -trimpath -o "$dir/kube.new" \
		-ldflags="-s -w -X $at.gitVersion=$version -X $at.gitMajor=1 -X $at.gitMinor=$minor" . >&2
	mv "$dir/kube.new" "$dir/kube"
fi
helm=v4.3.1
if [ ! -x "$dir/helm-$helm" ]; then
	GOBIN=$dir/new CGO_ENABLED=0 nice -n 15 go install -trimpath -ldflags="-s -w" "helm.sh/helm/v4/cmd/helm@$helm" >&2
	mv "$dir/new/helm" "$dir/helm-$helm"
fi
ln -sf "helm-$helm" "$dir/helm"
kwok=v0.8.0
if [ ! -x "$dir/kwok-$kwok" ]; then
	GOBIN=$dir/new CGO_ENABLED=0 nice -n 15 go install -trimpath -ldflags="-s -w" "sigs.k8s.io/kwok/cmd/kwok@$kwok" >&2
	mv "$dir/new/kwok" "$dir/kwok-$kwok"
fi
ln -sf "kwok-$kwok" "$dir/kwok"
vpa=k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1
if [ ! -s "$dir/vpa-crd.yaml" ]; then
	module=$(cd "$(mktemp -d)" && go mod download -json "$vpa" | sed -n 's/^.*"Dir": "\(.*\)",$/\1/p')
	install -m 644 "$module/deploy/vpa-v1-crd-gen.yaml" "$dir/vpa-crd.yaml"
fi
for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
	ln -sf kube "$dir/$name"
done
echo "$dir"
