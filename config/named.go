package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
)

// named are the resources that a knob has a key of its own for, beside resources.
func (k *Knob) named() map[string]**Bounds {
	return map[string]**Bounds{trimtab.LLC: &k.LLC, trimtab.MemBW: &k.MemBW}
}

// fold puts the bounds that have a key of their own among the others, where all the rest
// of the program finds them.
func (k *Knob) fold() {
	for name, b := range k.named() {
		if _, twice := k.Resources[name]; *b == nil || twice {
			continue
		}
		if k.Resources == nil {
			k.Resources = map[string]Bounds{}
		}
		k.Resources[name] = **b
		*b = nil
	}
}

// keyOf is where the bounds of a further resource stand in the file.
func (v *validator) keyOf(where, resource string) string {
	if own := where + "." + resource; v.has(own) {
		return own
	}
	return where + ".resources." + resource
}

// checkNamedBounds checks what is special to bounds with a key of their own.
func (k *Knob) checkNamedBounds(v *validator, where string) {
	all := k.named()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch at := where + "." + name; {
		case *all[name] != nil: // fold left it
			v.fail(at, fmt.Sprintf("the bounds of %s are given twice", name), "remove one of them")
		case v.has(at) && k.Cgroup == "":
			v.fail(at, "a process knob has no "+name, "name a cgroup, or remove "+name)
		}
	}
}
