// Package kinds lists the kinds of knobs that this program has. A new kind is one more line in
// [In]; everything else, restore and watchdog included, uses that list.
//
//	knob, err := actuator.AnyOf(kinds.All())(undo)
package kinds

import (
	"context"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/cpufreq"
	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/actuator/envoy"
	"github.com/trimtab/trimtab/actuator/freezer"
	"github.com/trimtab/trimtab/actuator/gate"
	"github.com/trimtab/trimtab/actuator/haproxy"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/actuator/network"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/actuator/runtimes"
	"github.com/trimtab/trimtab/internal/kube"
)

// All returns the kinds of knobs that this program has. A new kind is one more line in [In].
func All() []actuator.Kind { return On(resctrl.Host{}) }

// On returns the kinds on a host with the given resctrl.
func On(rdt resctrl.Host) []actuator.Kind {
	return In(rdt, kubernetes.Cluster{Watched: NoCluster})
}

// In returns the kinds on a host that watches a cluster.
func In(rdt resctrl.Host, cluster kubernetes.Cluster) []actuator.Kind {
	return []actuator.Kind{
		actuator.Join(runtimes.Within(cgroup.Kind()), cpuset.Kind(), freezer.Kind(), resctrl.Kind(rdt), cpufreq.Kind()),
		network.Kind(),
		process.Kind(),
		haproxy.Kind(),
		gate.Kind(),
		envoy.Kind(),
		kubernetes.Pods(cluster),
		kubernetes.Scales(cluster),
	}
}

// RDT returns this host's resctrl for an actuator with its locks in the given directory. The locks
// show which resource groups a dead process left behind.
func RDT(locks string) resctrl.Host {
	return resctrl.Host{Locations: func(ctx context.Context) (map[string]bool, error) {
		return actuator.Locations(ctx, locks, trimtab.LLC, trimtab.MemBW)
	}}
}

// Reopen makes a knob from the journal alone.
func Reopen(undo []byte) (actuator.Knob, error) { return actuator.AnyOf(All())(undo) }

// NoCluster is used while no cluster is watched.
func NoCluster() (*kube.Cluster, error) {
	return nil, fmt.Errorf("the Kubernetes cluster is not watched: %w", trimtab.ErrStale)
}

// OfCluster reports whether knobs of the given kind belong to a cluster.
func OfCluster(kind string) bool {
	return kind == kubernetes.PodsKind || kind == kubernetes.ScaleKind
}
