package config

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Several reports whether the knob is a pattern: each cgroup, or supervised
// directory, that matches is an instance, named by the text that the * matches.
func (k *Knob) Several() bool { return strings.Contains(k.location(), "*") }

// location is where the knob is, in the words of its kind.
func (k *Knob) location() string {
	switch {
	case k.Process != nil:
		return k.Process.Dir
	case k.pods():
		return k.Kubernetes.path() + "/" + k.Kubernetes.Container + "/*"
	case k.Kubernetes != nil:
		return k.Kubernetes.path() + "/*"
	}
	return k.Cgroup
}

// Location says where the knobs of a workload are: of which kind, in which declared
// root ("": none is declared), and where in it.
func (c *Config) Location(k *Knob) (kind, root, path string) {
	switch {
	case k.Process != nil:
		return "process", "", k.location()
	case k.pods():
		return "kubernetes", clusterRoot, k.location()
	case k.Kubernetes != nil:
		return "kubernetes-scale", clusterRoot, k.location()
	}
	return "cgroup", c.Actuator.CgroupRoot, k.location()
}

// Link says where the network interface of a workload is, as [Config.Location] does;
// ok is false where it has none.
func (k *Knob) Link() (kind, root, path string, ok bool) {
	if k.Interface == nil {
		return "", "", "", false
	}
	root, namespace := filepath.Split(k.Interface.Namespace)
	switch {
	case namespace == "":
		return "network", "", k.Interface.Name, true
	case root == "":
		root = "/run/netns"
	}
	return "network", filepath.Clean(root), namespace + "/" + k.Interface.Name, true
}

// grouped is the knob of one workload in overlaps.
type grouped struct {
	*Knob
	index int
	// at is the location, head the part of it before the *, parts the whole path.
	at, head string
	parts    []string
}

// plainGroup is a pattern without the names that it leaves out.
func plainGroup(pattern string) string {
	at, _, _ := strings.Cut(pattern, " !")
	return at
}

// overlaps refuses two knobs on one cgroup, and one inside another: their
// quotas would be counted twice. Of directories of processes one may lie in
// another. Of patterns it is enough that it can happen, whatever they leave out.
func (v *validator) overlaps() {
	var groups, directories []grouped
	targets := map[string]int{}
	for i := range v.config.Workloads {
		k := &v.config.Workloads[i].Knob
		g := grouped{Knob: k, index: i, at: plainGroup(k.location())}
		if k.Process != nil && g.at != "" {
			g.at = path.Clean(g.at)
		}
		g.head, _, _ = strings.Cut(g.at, "*")
		g.parts = strings.Split(g.at, "/")
		if k.Kubernetes != nil {
			at := k.Kubernetes.path() + "/" + k.Kubernetes.Container
			if j, twice := targets[at]; twice {
				v.fail(fmt.Sprintf("workloads[%d].knob.kubernetes", i), fmt.Sprintf("%s is also that of %q", clip(at), clip(v.config.Workloads[j].Name)), "one workload of the cluster has one workload here")
			}
			targets[at] = i
		}
		switch {
		case g.at == "" || k.Kubernetes != nil:
		case k.Process != nil:
			directories = append(directories, g)
		default:
			groups = append(groups, g)
		}
	}
	v.overlapping(groups)
	v.overlapping(directories)
}

// overlapping is overlaps for the knobs of one kind.
func (v *validator) overlapping(all []grouped) {
	// What two can both match begins with the heads of both: one head begins with
	// the other, and in this order only such are between them.
	slices.SortStableFunc(all, func(a, b grouped) int {
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.at, b.at), cmp.Compare(a.Host, b.Host))
	})
	told := map[int]bool{}
	for i, p := range all {
		if i > 0 && all[i-1].at == p.at && all[i-1].Host == p.Host {
			continue // said of the first of them
		}
		for _, q := range all[i+1:] {
			if !strings.HasPrefix(q.head, p.head) {
				break
			}
			v.overlap(p, q, told)
		}
	}
}

// overlap refuses one of two knobs that can meet, once.
func (v *validator) overlap(p, q grouped, told map[int]bool) {
	if p.Host != "" && q.Host != "" && p.Host != q.Host || !meet(p.parts, q.parts) {
		return
	}
	if p.Process != nil && len(p.parts) != len(q.parts) {
		return // a service in the directory of another is one of its own
	}
	outer, inner := p, q
	if order := cmp.Or(cmp.Compare(len(p.parts), len(q.parts)), cmp.Compare(p.index, q.index)); order > 0 {
		outer, inner = q, p
	}
	if told[inner.index] {
		return
	}
	told[inner.index] = true
	first := fmt.Sprintf("that of %q", clip(v.config.Workloads[outer.index].Name))
	is, lies := "is also", "lies inside"
	if outer.at != inner.at && (outer.Several() || inner.Several()) {
		is, lies = "can also be", "can lie inside"
		first += fmt.Sprintf(", %q", clip(outer.at))
	}
	at := fmt.Sprintf("workloads[%d].knob.", inner.index)
	switch {
	case p.Process != nil:
		v.fail(at+"process.dir", fmt.Sprintf("dir %q %s %s", clip(inner.at), is, first), "one supervisor has one workload")
	case len(outer.parts) == len(inner.parts):
		v.fail(at+"cgroup", fmt.Sprintf("cgroup %q %s %s", clip(inner.at), is, first), "one cgroup has one workload")
	default:
		v.fail(at+"cgroup", fmt.Sprintf("cgroup %q %s %s", clip(inner.at), lies, first), "what it gets would be counted twice: name cgroups side by side")
	}
}

// meet reports whether some path that the one matches is one that the other
// matches, or lies within one.
func meet(p, q []string) bool {
	for i := range min(len(p), len(q)) {
		if !partsMeet(p[i], q[i]) {
			return false
		}
	}
	return true
}

// partsMeet reports whether some text matches both patterns. A * matches at
// least one character.
func partsMeet(p, q string) bool {
	before, behind, star := strings.Cut(p, "*")
	first, last, other := strings.Cut(q, "*")
	switch {
	case !star && !other:
		return p == q
	case !star:
		return partsMeet(q, p)
	case !other:
		return len(q) > len(before)+len(behind) && strings.HasPrefix(q, before) && strings.HasSuffix(q, behind)
	}
	return (strings.HasPrefix(before, first) || strings.HasPrefix(first, before)) &&
		(strings.HasSuffix(behind, last) || strings.HasSuffix(last, behind))
}
