package config

import "github.com/trimtab/trimtab"

// only is the resource of a pool that shares neither cores nor workers but one other,
// such as the ways of a cache; "": it does share those, or several.
func (p *Pool) only() string {
	if p.CPU > 0 || p.Workers > 0 || p.Memory > 0 || len(p.Resources) != 1 {
		return ""
	}
	for name := range p.Resources {
		return name
	}
	return ""
}

// keyOfFirst is where the capacity of the pool's first resource stands in the file.
func (p *Pool) keyOfFirst() string {
	if name := p.only(); name != "" {
		return "pool.resources." + name
	}
	return "pool." + p.Resource()
}

// only is the resource of a knob of a cgroup that has bounds of one alone, which is not
// cpu.
func (k *Knob) only() string {
	if k.CPU != nil || k.Process != nil || k.Memory != nil || len(k.Resources) != 1 {
		return ""
	}
	for name := range k.Resources {
		return name
	}
	return ""
}

// firstResource is what the knob turns of the pool's first resource, and what it may not
// have beside it.
func (k *Knob) firstResource(v *validator) (kind, resource, other string) {
	if k.Process != nil {
		return "process", trimtab.Workers, trimtab.CPU
	}
	kind = "cgroup"
	if k.Kubernetes != nil {
		kind = "kubernetes"
	}
	if name := v.config.Pool.only(); name != "" && k.CPU == nil {
		return kind, name, trimtab.Workers
	}
	return kind, trimtab.CPU, trimtab.Workers
}
