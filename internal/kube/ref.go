package kube

import (
	"strings"

	"github.com/trimtab/trimtab"
)

// Ref names a workload, or one container of its pods.
type Ref struct {
	Namespace string `json:"namespace"`
	// Kind is one of the kinds of workloads.
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String is NAMESPACE/KIND/NAME, the name of a workload in all messages.
func (r Ref) String() string { return r.Namespace + "/" + r.Kind + "/" + r.Name }

// ParseRef parses NAMESPACE/KIND/NAME, and returns the elements after it.
func ParseRef(s string) (r Ref, rest []string, err error) {
	parts := strings.Split(s, "/")
	if len(parts) < 3 || parts[0] == "" || parts[2] == "" {
		return r, nil, trimtab.Invalidf("workload %.80q: want NAMESPACE/KIND/NAME", s)
	}
	r = Ref{parts[0], parts[1], parts[2]}
	if _, err := ResourceOfKind(r.Kind); err != nil {
		return r, nil, err
	}
	return r, parts[3:], nil
}

// is reports whether an autoscaler's reference names the workload: group, not version,
// kind and name.
func (t TargetRef) is(r Ref) bool {
	kind, group := t.Kind, t.group()
	if kind == "" { // KEDA's defaults
		kind = Deployment
	}
	of, _ := ResourceOfKind(r.Kind) // an unknown kind is in no group
	return t.Name == r.Name && kind == r.Kind && (group == of.Group || t.APIVersion == "")
}

// index joins pods with the workloads that they belong to.
type index struct {
	changes uint64
	of      map[Ref][]*Pod
	byUID   map[string]Ref
}

// Workload returns a workload in its last known state, or nil.
func (w *Cluster) workload(r Ref) *Workload {
	if t := w.tables.workloads[r.Kind]; t != nil {
		return t.get(r.Namespace, r.Name)
	}
	return nil
}

// OwnerOf returns the workload that a pod belongs to: by its owners' references, never
// by its name.
func (w *Cluster) OwnerOf(p *Pod) (Ref, bool) {
	o, ok := p.controller()
	if !ok {
		return Ref{}, false
	}
	if o.Kind == "ReplicaSet" {
		set := w.tables.replicasets.get(p.Namespace, o.Name)
		if set == nil || set.UID != o.UID {
			return Ref{}, false
		}
		if o, ok = set.controller(); !ok {
			return Ref{}, false
		}
	}
	r := Ref{p.Namespace, o.Kind, o.Name}
	if _, err := ResourceOfKind(o.Kind); err != nil {
		return Ref{}, false
	}
	if of := w.workload(r); of == nil || of.UID != o.UID {
		return Ref{}, false
	}
	return r, true
}

// byLabels returns the Deployment of a pod whose ReplicaSet is not known yet: in a rollout the
// watch of pods may be ahead of that of ReplicaSets, and such a pod already uses resources.
func (w *Cluster) byLabels(p *Pod) (r Ref, ok bool) {
	o, has := p.controller()
	if !has || o.Kind != "ReplicaSet" {
		return Ref{}, false
	}
	if set := w.tables.replicasets.get(p.Namespace, o.Name); set != nil && set.UID == o.UID {
		return Ref{}, false // it is known, and belongs to no Deployment
	}
	for _, kind := range []string{Deployment, Rollout} {
		if t := w.tables.workloads[kind]; t != nil {
			for d := range t.in(p.Namespace) {
				if d.Selects(p) {
					return Ref{d.Namespace, kind, d.Name}, true
				}
			}
		}
	}
	return Ref{}, false
}

// joined returns the pods by their workload.
func (w *Cluster) joined() *index {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := w.changes.Load() + w.podChanges.Load()
	if w.index != nil && w.index.changes == changes {
		return w.index
	}
	next := &index{changes: changes, of: map[Ref][]*Pod{}, byUID: map[string]Ref{}}
	for p := range w.tables.pods.in("") {
		r, ok := w.OwnerOf(p)
		if ok {
			next.byUID[p.UID] = r
		} else {
			r, ok = w.byLabels(p)
		}
		if ok {
			next.of[r] = append(next.of[r], p)
		}
	}
	w.index = next
	return next
}

// PodsOf returns the pods of a workload that have not ended, in no order.
func (w *Cluster) PodsOf(r Ref) ([]*Pod, error) {
	of, err := ResourceOfKind(r.Kind)
	if err == nil {
		err = w.fresh(pods(), replicasets(), of)
	}
	if err != nil {
		return nil, err
	}
	var out []*Pod
	for _, p := range w.joined().of[r] {
		if !p.Over() {
			out = append(out, p)
		}
	}
	return out, nil
}

// ByUID returns the workload of the pod with a uid.
func (w *Cluster) ByUID(uid string) (Ref, bool) {
	r, ok := w.joined().byUID[uid]
	return r, ok
}

// PodBy returns a pod of which is is true, or nil.
func (w *Cluster) PodBy(is func(*Pod) bool) *Pod {
	for p := range w.tables.pods.in("") {
		if is(p) {
			return p
		}
	}
	return nil
}

// EachPod calls do with each pod of a namespace that belongs to a workload.
func (w *Cluster) EachPod(namespace string, do func(Ref, *Pod)) {
	for r, all := range w.joined().of {
		if r.Namespace != namespace {
			continue
		}
		for _, p := range all {
			do(r, p)
		}
	}
}
