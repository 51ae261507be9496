package kube

import "slices"

// Needs lists the operations that trimtab needs in a cluster.
type Needs struct {
	// Namespaces are watched.
	Namespaces []string
	// Resize and Scale say which are used, Annotate that pods are annotated.
	Resize, Scale, Annotate bool
	// Kinds are those of workloads; Deployment and StatefulSet are read in any case.
	Kinds []string
	// Metrics and Kubelets say from where the memory of pods is read.
	Metrics, Kubelets bool
	// Events says that it writes events on workloads, Recommend that it writes the status of VPAs.
	Events, Recommend bool
	// Starts is the namespace and name of the ConfigMap with start values; "": none.
	Starts, StartsName string
	// Objectives are objects that say SLOs, as KIND NAMESPACE/NAME.
	Objectives []string
	// Journal is the namespace and name of the ConfigMap with the journal; "": none.
	Journal, JournalName string
}

// Rights lists the rights that these operations need.
func (n *Needs) Rights() (all []Right) {
	add := func(r Right, verbs ...string) {
		for _, r.Verb = range verbs {
			all = append(all, r)
		}
	}
	for _, namespace := range n.Namespaces {
		of := func(r Resource, subresource string) Right {
			return Right{Group: r.Group, Resource: r.Name, Subresource: subresource, Namespace: namespace}
		}
		for _, r := range []Resource{pods(), deployments(), statefulsets(), replicasets(), hpas(), budgets(), quotas(), ranges(), scaledObjects(), vpas()} {
			add(of(r, ""), "list", "watch")
		}
		for _, kind := range n.Kinds {
			r, _ := ResourceOfKind(kind) // it was checked with the file
			if kind == DaemonSet || kind == Rollout {
				add(of(r, ""), "list", "watch")
			}
			if n.Scale && kind == Rollout {
				add(of(r, "scale"), "get", "patch")
			}
		}
		if n.Metrics {
			add(Right{Group: "metrics.k8s.io", Resource: "pods", Namespace: namespace}, "list")
		}
		if n.Resize {
			add(of(pods(), "resize"), "patch")
		}
		if n.Annotate {
			add(of(pods(), ""), "patch")
		}
		if n.Events {
			add(of(events(), ""), "create", "patch")
		}
		if n.Recommend {
			add(of(vpas(), "status"), "patch")
		}
		if n.Scale {
			add(of(deployments(), "scale"), "get", "patch")
			add(of(statefulsets(), "scale"), "get", "patch")
		}
	}
	for _, object := range n.Objectives {
		for _, right := range ObjectiveRights(object) {
			if !slices.Contains(all, right) {
				all = append(all, right)
			}
		}
	}
	add(Right{Resource: "nodes"}, "list", "watch")
	if n.Kubelets {
		add(Right{Resource: "nodes", Subresource: "stats"}, "get")
	}
	if n.Journal != "" {
		add(Right{Resource: "configmaps", Namespace: n.Journal}, "create")
		add(Right{Resource: "configmaps", Namespace: n.Journal, Name: n.JournalName}, "get", "update")
	}
	if n.Starts != "" {
		add(Right{Resource: "configmaps", Namespace: n.Starts, Name: n.StartsName}, "get", "patch")
	}
	return all
}
