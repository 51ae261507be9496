package kubernetes

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// Names joins the names of one cluster's workloads.
type Names struct {
	cluster *kube.Cluster
}

// New returns Names that look things up in a cluster.
func New(c *kube.Cluster) *Names { return &Names{c} }

// errUnknown says that no watched workload has this identity.
var errUnknown = errors.New("no workload that is watched is known by it")

// OfSpan returns the workload of a resource of spans, by its attributes.
func (n *Names) OfSpan(attrs []trimtab.Attr) (kube.Ref, error) {
	of := func(key string) string {
		for _, a := range attrs {
			if a.Key == key {
				return a.Value
			}
		}
		return ""
	}
	namespace := of("k8s.namespace.name")
	for _, direct := range []struct{ key, kind string }{{"k8s.deployment.name", kube.Deployment}, {"k8s.statefulset.name", kube.StatefulSet},
		{"k8s.daemonset.name", kube.DaemonSet}, {"k8s.rollout.name", kube.Rollout}} {
		if name := of(direct.key); name != "" && namespace != "" {
			r := kube.Ref{Namespace: namespace, Kind: direct.kind, Name: name}
			if _, err := n.cluster.WorkloadOf(r); err != nil {
				return kube.Ref{}, fmt.Errorf("find %s: %w", r, err)
			}
			return r, nil
		}
	}
	if uid := of("k8s.pod.uid"); uid != "" {
		return n.ofUID(uid)
	}
	if name := of("k8s.pod.name"); name != "" && namespace != "" {
		return n.ofPod(namespace, name)
	}
	if ip := of("k8s.pod.ip"); ip != "" {
		return n.ofIP(ip)
	}
	if service := of("service.name"); service != "" {
		namespace = cmp.Or(namespace, of("service.namespace"))
		return n.ofService(namespace, service)
	}
	return kube.Ref{}, fmt.Errorf("find workload of spans: no attribute of theirs names a pod: %w", errUnknown)
}

func (n *Names) ofPod(namespace, name string) (kube.Ref, error) {
	p, err := n.cluster.PodOf(namespace, name, "")
	if err != nil {
		return kube.Ref{}, err
	}
	return n.ofUID(p.UID)
}

func (n *Names) ofUID(uid string) (kube.Ref, error) {
	if r, ok := n.cluster.ByUID(uid); ok {
		return r, nil
	}
	return kube.Ref{}, fmt.Errorf("find workload of pod %s: %w", uid, errUnknown)
}

// ofIP ignores pods in their host's network, since many share that address.
func (n *Names) ofIP(ip string) (kube.Ref, error) {
	p := n.cluster.PodBy(func(p *kube.Pod) bool { return p.Status.PodIP == ip && !p.Spec.HostNetwork && !p.Over() })
	if p == nil {
		return kube.Ref{}, fmt.Errorf("find pod of address %s: %w", ip, errUnknown)
	}
	return n.ofUID(p.UID)
}

// ofService finds the one workload whose pods use this service name, in the order of the
// conventions: annotation, labels, the name of the workload.
func (n *Names) ofService(namespace, service string) (kube.Ref, error) {
	if namespace == "" {
		return kube.Ref{}, fmt.Errorf("find workload of service %.100q: its spans name no namespace: %w", service, errUnknown)
	}
	found := map[kube.Ref]bool{}
	n.cluster.EachPod(namespace, func(r kube.Ref, p *kube.Pod) {
		if serviceOf(r, p) == service {
			found[r] = true
		}
	})
	if len(found) != 1 {
		return kube.Ref{}, fmt.Errorf("find workload of service %.100q in namespace %s: %d call themselves so: %w", service, namespace, len(found), errUnknown)
	}
	for r := range found {
		return r, nil
	}
	return kube.Ref{}, errUnknown
}

// serviceOf is the service.name that the conventions give a pod.
func serviceOf(r kube.Ref, p *kube.Pod) string {
	for _, name := range []string{
		p.Annotations["resource.opentelemetry.io/service.name"],
		p.Labels["app.kubernetes.io/instance"], p.Labels["app.kubernetes.io/name"],
	} {
		if name != "" {
			return name
		}
	}
	return r.Name
}
