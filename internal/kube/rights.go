package kube

import "slices"

// Needs lists the operations that trimtab needs in a cluster.
type Needs struct {
	// Namespaces are watched.
	Namespaces []string
	// Resize and Scale say which are used.
	Resize, Scale bool
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
	for _, namespace := range n.Namespaces {
		for _, r := range []Resource{pods(), deployments(), statefulsets(), replicasets(), hpas(), budgets(), quotas(), ranges(), scaledObjects(), vpas()} {
			for _, verb := range []string{"list", "watch"} {
				all = append(all, Right{Verb: verb, Group: r.Group, Resource: r.Name, Namespace: namespace})
			}
		}
		if n.Resize {
			all = append(all, Right{Verb: "patch", Resource: "pods", Subresource: "resize", Namespace: namespace})
		}
		if n.Events {
			all = append(all, Right{Verb: "create", Group: events().Group, Resource: events().Name, Namespace: namespace},
				Right{Verb: "patch", Group: events().Group, Resource: events().Name, Namespace: namespace})
		}
		if n.Recommend {
			all = append(all, Right{Verb: "patch", Group: vpas().Group, Resource: vpas().Name, Subresource: "status", Namespace: namespace})
		}
		for _, verb := range []string{"get", "patch"} {
			if n.Scale {
				all = append(all,
					Right{Verb: verb, Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: namespace},
					Right{Verb: verb, Group: "apps", Resource: "statefulsets", Subresource: "scale", Namespace: namespace})
			}
		}
	}
	for _, object := range n.Objectives {
		for _, right := range ObjectiveRights(object) {
			if !slices.Contains(all, right) {
				all = append(all, right)
			}
		}
	}
	for _, verb := range []string{"list", "watch"} {
		all = append(all, Right{Verb: verb, Resource: "nodes"})
	}
	if n.Journal != "" {
		all = append(all, Right{Verb: "create", Resource: "configmaps", Namespace: n.Journal},
			Right{Verb: "get", Resource: "configmaps", Namespace: n.Journal, Name: n.JournalName},
			Right{Verb: "update", Resource: "configmaps", Namespace: n.Journal, Name: n.JournalName})
	}
	if n.Starts != "" {
		all = append(all, Right{Verb: "get", Resource: "configmaps", Namespace: n.Starts, Name: n.StartsName},
			Right{Verb: "patch", Resource: "configmaps", Namespace: n.Starts, Name: n.StartsName})
	}
	return all
}
