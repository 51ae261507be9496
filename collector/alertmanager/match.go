package alertmanager

import (
	"maps"
	"slices"
)

// index finds the workloads that an alert concerns by one label of each, the
// first by name, and then compares the rest.
type index map[pair][]Workload

type pair struct{ name, value string }

func newIndex(workloads []Workload) index {
	x := index{}
	for _, w := range workloads {
		if len(w.Labels) == 0 {
			continue
		}
		name := slices.Sorted(maps.Keys(w.Labels))[0]
		at := pair{name, w.Labels[name]}
		x[at] = append(x[at], w)
	}
	return x
}

// concerned returns the names of the workloads all of whose labels are in l,
// in order.
func (x index) concerned(l labels) []string {
	var names []string
	for name, value := range l {
		for _, w := range x[pair{name, value}] {
			if contains(l, w.Labels) {
				names = append(names, w.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func contains(all labels, some map[string]string) bool {
	for name, value := range some {
		if got, ok := all[name]; !ok || got != value {
			return false
		}
	}
	return true
}
