package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab"
)

// checkLinked checks the interface of a knob, and that bounds exist for the resources that its
// cgroup and its interface set, and for no others.
func (k *Knob) checkLinked(v *validator, where string) {
	if _, ok := k.Resources[trimtab.Frequency]; ok && k.Cgroup == "" {
		v.fail(where+".resources."+trimtab.Frequency, "a process knob has no frequency", "name a cgroup with a cpuset of its own, or remove frequency")
	}
	_, bounded := k.Resources[trimtab.Network]
	switch i := k.Interface; {
	case i == nil && bounded:
		v.fail(where+".resources."+trimtab.Network, "knob has no interface", "write interface: {name: eth0, namespace: NAME}")
	case i == nil:
	case !bounded:
		v.fail(where+".interface", "the interface has no bounds", "write resources: {network: {min: …, max: …}}, in bytes per second")
	default:
		k.checkIface(v, where+".interface")
	}
}

func (k *Knob) checkIface(v *validator, where string) {
	i := k.Interface
	stars := strings.Count(i.Name, "*") + strings.Count(i.Namespace, "*")
	switch plain := func(s string) bool { return !strings.ContainsAny(s, "/\x00 \n") && s != "." && s != ".." }; {
	case i.Name == "" || !plain(i.Name) || len(i.Name) > 15:
		v.fail(where+".name", fmt.Sprintf("%q is no name of an interface", clip(i.Name)), "write at most 15 characters, as in eth0: ip link shows them")
	case i.Namespace != "" && !plain(i.Namespace) && (!filepath.IsAbs(i.Namespace) || filepath.Clean(i.Namespace) != i.Namespace || i.Namespace == "/"):
		v.fail(where+".namespace", fmt.Sprintf("namespace %q is neither a name nor an absolute path", clip(i.Namespace)), "write the name of a file in /run/netns, as ip netns shows it, or /run/docker/netns/NAME")
	case strings.Contains(filepath.Dir(i.Namespace), "*"):
		v.fail(where+".namespace", fmt.Sprintf("namespace %q has a * before its last part", clip(i.Namespace)), "let the * stand for the name of the file")
	case stars > 1:
		v.fail(where, "the interface has more than one *", "one * stands for the name of the instance")
	case (stars == 1) != k.Several():
		v.fail(where, "of interface and "+knobWord(k)+" only one has a *", "give both a *, which stands for the name of the same instance, or none")
	}
}

// knobWord returns the key that gives the location of a knob.
func knobWord(k *Knob) string {
	if k.Process != nil {
		return "dir"
	}
	return "cgroup"
}

// links refuses two workloads on one interface: their bytes could not be told apart.
func (v *validator) links() {
	first := map[string]int{}
	for i := range v.config.Workloads {
		k := &v.config.Workloads[i].Knob
		_, root, path, ok := k.Link()
		if !ok || k.Interface.Name == "" {
			continue
		}
		at := root + "/" + path
		j, taken := first[at]
		if !taken {
			first[at] = i
			continue
		}
		if other := v.config.Workloads[j].Knob.Host; k.Host == "" || other == "" || k.Host == other {
			v.fail(fmt.Sprintf("workloads[%d].knob.interface", i), fmt.Sprintf("interface %q is also that of %q", clip(path), clip(v.config.Workloads[j].Name)), "an interface may have one workload only")
		}
	}
}
