package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/trimtab/trimtab"
)

// This file replaces a workload of the file that has no name, and whose match.kubernetes names only
// a namespace, by one for each workload that the namespace has.

// Namespace is what such a workload stands for.
type Namespace struct {
	Name     string
	Selector map[string]string
}

// Member is a workload of a namespace.
type Member struct {
	// Kind is Deployment or StatefulSet.
	Kind, Name string
	// Container is the one that is planned for where the file names none.
	Container string
	// SLO was proposed for it; without a latency there is no proposal yet.
	SLO SLO

	// standIn: it is none, and lets the keys of the file be checked where no other is known.
	standIn bool
}

// Members lists the workloads of a namespace.
type Members func(of Kubernetes, in Namespace) ([]Member, error)

// NameOf is the name that a member has as a workload of trimtab.
func (n Namespace) NameOf(m Member) string { return n.Name + "/" + m.Name }

// namespaces replaces the entries of a file that stand for namespaces.
type namespaces struct {
	*validator
	// taken are the names, and the objects, that the file has otherwise.
	taken map[string]bool
	// all has the member that each entry is to be; nil: it has a name of its own.
	all []*Member
}

// whole reports whether a workload stands for all of a namespace.
func (v namespaces) whole(w *Workload, at string) bool {
	t := w.Match.Kubernetes
	return t != nil && t.Namespace != "" && !v.has(at+".name") && !v.lost(at+".name") &&
		!slices.ContainsFunc(t.kinds(), func(k kindOf) bool {
			key := at + ".match.kubernetes." + k.key()
			return v.has(key) || v.lost(key)
		})
}

// expand looks the members up. Where a namespace has several, the list in the tree then has its entry
// as often, and has to be decoded again.
func (v *namespaces) expand(root ast.Node) (again bool) {
	v.taken = map[string]bool{}
	for i := range v.config.Workloads {
		w := &v.config.Workloads[i]
		v.taken[w.Name] = true
		for _, t := range []*KubernetesTarget{w.Match.Kubernetes, w.Knob.Kubernetes} {
			if t != nil {
				v.taken[t.path()] = true
			}
		}
	}
	list, entries := listed(root), []ast.Node(nil)
	if list == nil || len(list.Values) != len(v.config.Workloads) {
		v.all = make([]*Member, len(v.config.Workloads))
		return false
	}
	for i := range v.config.Workloads {
		w, at := &v.config.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		members := []*Member{nil}
		if v.whole(w, at) {
			members = v.members(w, at)
		}
		for _, m := range members {
			v.all, entries = append(v.all, m), append(entries, list.Values[i])
		}
	}
	list.Values = entries
	return len(v.all) > len(v.config.Workloads)
}

// listed returns the list of workloads.
func listed(root ast.Node) *ast.SequenceNode {
	for _, e := range fields(root) {
		if list, ok := e.Value.(*ast.SequenceNode); ok && e.Key.GetToken() != nil && e.Key.GetToken().Value == "workloads" {
			return list
		}
	}
	return nil
}

// members returns the workloads that an entry stands for, at least a stand-in.
func (v *namespaces) members(w *Workload, at string) (all []*Member) {
	in := Namespace{w.Match.Kubernetes.Namespace, w.Match.Kubernetes.Selector}
	v.config.Namespaces = append(v.config.Namespaces, in)
	where := at + ".match.kubernetes.namespace"
	var found []Member
	var err error
	switch {
	case len(v.errs) > 0:
	case v.from.members == nil:
		v.warn(where, fmt.Sprintf("the workloads of namespace %s were not looked up", clip(in.Name)), "trimtab check config --live looks them up")
	default:
		if found, err = v.from.members(v.config.Kubernetes, in); err != nil {
			v.warn(where, fmt.Sprintf("the workloads of namespace %s cannot be listed: %v", clip(in.Name), causeOf(err)), "trimtab check kubernetes says what is missing: a right, or the API server")
		}
	}
	for _, m := range found {
		t := KubernetesTarget{Namespace: in.Name}
		t.name(&m)
		name := in.NameOf(m)
		switch {
		case v.taken[t.path()]:
		case v.taken[name]:
			v.warn(where, fmt.Sprintf("%s is left out: another workload is named %s", t.path(), clip(name)), "give the other one another name, or declare this one with its own")
		default:
			all = append(all, &m)
			v.taken[t.path()], v.taken[name] = true, true
		}
	}
	if len(all) == 0 {
		all = append(all, &Member{Kind: "Deployment", Name: "any", standIn: true})
	}
	return all
}

// name makes the target that of a member.
func (t *KubernetesTarget) name(m *Member) {
	t.Selector, t.Container = nil, cmp.Or(t.Container, m.Container)
	for _, k := range t.kinds() {
		if k.kind == m.Kind {
			*k.name = m.Name
		}
	}
}

// become makes each entry of the file the member that it stands for.
func (v *namespaces) become() {
	for i, m := range v.all {
		if m == nil {
			continue
		}
		w, at := &v.config.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		t := w.Match.Kubernetes
		w.Name, w.Drafted = Namespace{Name: t.Namespace}.NameOf(*m), true
		t.name(m)
		v.at[at+".name"] = v.at[at]
		if w.Mode == trimtab.Act {
			v.fail(at+".mode", "a whole namespace is recommended for, and never set", "write mode: recommend; a workload that trimtab shall set has an entry with its name and deployment: NAME")
		}
		if !v.has(at + ".knob") {
			w.Knob.CPU = &CPUBounds{}
			v.at[at+".knob"] = v.at[at]
		}
		w.inherit(true)
		if v.has(at+".slo") || w.Knob.MemoryAlone(&v.config.Pool) {
			continue
		}
		if w.SLO = m.SLO; w.SLO.Latency == 0 {
			w.Mode = trimtab.Off // until one can be proposed
		} else {
			v.at[at+".slo.latency"], v.at[at+".slo.fraction"] = v.at[at], v.at[at]
			v.at[at+".slo"] = v.at[at]
		}
		w.SLO.Proposed = true
	}
}

// end removes the stand-ins, which are in no namespace.
func (v *namespaces) end() {
	i := -1
	v.config.Workloads = slices.DeleteFunc(v.config.Workloads, func(Workload) bool { i++; return v.all[i] != nil && v.all[i].standIn })
}
