package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Share is one resource of a pool, with the defaults filled in. Amounts are in
// the resource's unit: cores, workers, bytes, or what the operator counts in.
type Share struct {
	Name                 string
	Capacity, Unit, Step float64
}

// Shares lists the resources of the pool: the first one, memory, and those of
// Resources in order of name. It is empty when the pool has no capacity.
func (p *Pool) Shares() []Share {
	if p.Capacity() <= 0 {
		return nil
	}
	out := []Share{{p.Resource(), p.Capacity(), p.Unit, p.Step}}
	if p.Memory > 0 {
		u := memoryUnit(float64(p.Memory))
		out = append(out, Share{trimtab.Memory, float64(p.Memory), u, 10 * u})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		if name == p.Resource() {
			continue
		}
		u := furtherUnit(p.Resources[name])
		out = append(out, Share{name, p.Resources[name], u, 10 * u})
	}
	return out
}

// page is the least memory that a kernel limits.
const page = 4096

// memoryUnit is the largest power of two that is at most a thousandth of the
// capacity, and at least a page.
func memoryUnit(capacity float64) float64 {
	return math.Max(page, math.Exp2(math.Floor(math.Log2(capacity/1000))))
}

// furtherUnit is 1 for a whole number of at most 1000, such as the ways of a
// cache; else the largest of 1, 2 and 5 times a power of ten that is at most a
// thousandth of the capacity.
func furtherUnit(capacity float64) float64 {
	if capacity <= 1000 && capacity == math.Trunc(capacity) {
		return 1
	}
	want := capacity / 1000
	power := math.Pow(10, math.Floor(math.Log10(want)+1e-9))
	for _, digit := range []float64{5, 2} {
		if digit*power <= want*(1+1e-9) {
			return digit * power
		}
	}
	return power
}

// leastMemory is the least memory limit, sizedMargin the margin above a need, where the file says
// nothing.
const (
	leastMemory Bytes = 64 << 20
	sizedMargin       = 0.07
)

// BoundsOf returns the bounds on one resource, in its unit; false when there is
// no knob for it.
func (k *Knob) BoundsOf(resource string) (Bounds, bool) {
	switch {
	case resource == trimtab.CPU && k.CPU != nil:
		return k.CPU.Bounds, true
	case resource == trimtab.Workers && k.Workers != nil:
		return *k.Workers, true
	case resource == trimtab.Memory && k.Memory != nil:
		return k.Memory.bounds(), true
	case resource == trimtab.Replicas && k.Replicas != nil:
		least := k.Replicas.Min
		if k.Replicas.AllowZero {
			least = 0
		}
		return Bounds{Min: float64(least), Max: float64(k.Replicas.Max)}, true
	case resource == trimtab.Concurrency && k.Concurrency != nil:
		return Bounds{Min: float64(k.Concurrency.Min), Max: float64(k.Concurrency.Max)}, true
	case resource == trimtab.Rate && k.Rate != nil:
		return Bounds{Min: k.Rate.Min, Max: k.Rate.Max}, true
	}
	b, ok := k.Resources[resource]
	return b, ok
}

func (m *MemoryBounds) bounds() Bounds {
	return Bounds{Min: float64(m.Min), Max: float64(m.Max), Default: float64(m.Default)}
}

// Of returns what is guaranteed of one resource beside the first, in its unit;
// 0: nothing.
func (g *Guarantees) Of(resource string) float64 {
	if resource == trimtab.Memory {
		return float64(g.Memory)
	}
	return g.Resources[resource]
}

// given lists the guaranteed amounts by key.
func (g *Guarantees) given() map[string]Share {
	out := map[string]Share{}
	if g.Memory != 0 {
		out["memory"] = Share{Name: trimtab.Memory, Capacity: float64(g.Memory)}
	}
	for name, v := range g.Resources {
		out["resources."+name] = Share{Name: name, Capacity: v}
	}
	return out
}

// check checks the guarantees of further resources at a path in the
// file, and adds them up by resource.
func (g *Guarantees) check(v *validator, at string, k *Knob, sums map[string]float64) {
	all := g.given()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		where, s := at+".guarantees."+key, all[key]
		pooled := v.config.Pool.Resources[s.Name]
		if s.Name == trimtab.Memory {
			pooled = float64(v.config.Pool.Memory)
		}
		turned := true
		if k != nil {
			_, turned = k.BoundsOf(s.Name)
		}
		switch {
		case pooled == 0:
			v.fail(where, fmt.Sprintf("the pool shares no %q", clip(s.Name)), "what is guaranteed must be shared: name it under pool, or remove the key")
		case !(s.Capacity > 0 && s.Capacity <= 1e15):
			v.fail(where, fmt.Sprintf("guarantee is %v, want more than 0 and at most 1e15", s.Capacity), "write the amount in the resource's unit, or remove the key")
		case !turned:
			v.fail(where, "its knob has no "+clip(s.Name), "write bounds of it in the knob, such as {min: …}, or remove the key")
		}
		sums[s.Name] += s.Capacity
	}
}

// guaranteedSums refuses more guarantees than there is.
func (v *validator) guaranteedSums(sums map[string]float64) {
	for _, s := range v.config.Pool.Shares()[min(1, len(v.config.Pool.Shares())):] {
		if sums[s.Name] <= s.Capacity*(1+1e-9) {
			continue
		}
		at := "pool." + s.Name
		if s.Name != trimtab.Memory {
			at = "pool.resources." + s.Name
		}
		v.fail(at, fmt.Sprintf("the guarantees of %s add up to %s, more than the capacity %s", s.Name, amount(s.Name, sums[s.Name]), amount(s.Name, s.Capacity)), "lower some guarantee or raise the capacity")
	}
}

// fillFurther sets what was left out of the bounds on further resources.
func (k *Knob) fillFurther(p *Pool) {
	k.Replicas.fill()
	k.Concurrency.fill()
	k.Rate.fill()
	if k.Memory != nil {
		k.Memory.Runtime.fill()
	}
	if k.Sized(p) {
		k.Memory.Min = cmp.Or(k.Memory.Min, min(leastMemory, k.Memory.Max))
		k.Memory.Margin = cmp.Or(k.Memory.Margin, sizedMargin)
	}
	for _, s := range p.Shares() {
		if s.Name == trimtab.Memory && k.Memory != nil {
			k.Memory.Min = cmp.Or(k.Memory.Min, Bytes(s.Unit))
			k.Memory.Max = cmp.Or(k.Memory.Max, p.Memory)
		}
		if b, ok := k.Resources[s.Name]; ok {
			b.Min = cmp.Or(b.Min, s.Unit)
			b.Max = cmp.Or(b.Max, s.Capacity)
			k.Resources[s.Name] = b
		}
	}
}

// checkFurther checks what is shared beside the first resource.
func (p *Pool) checkFurther(v *validator) {
	first := ""
	for _, path := range []string{"pool.memory", "pool.resources"} {
		if first == "" && v.has(path) {
			first = path
		}
	}
	if first == "" {
		return
	}
	if p.Resource() == "" && !v.has("pool.cpu") && !v.has("pool.workers") {
		v.fail(first, "the pool shares "+lastOf(first)+" and neither cpu nor workers", "add cpu: CORES: a pool of several resources needs cpu or workers among them")
	}
	if len(p.Resources) > trimtab.MaxResources-2 {
		v.fail("pool.resources", fmt.Sprintf("%d resources, limit %d", len(p.Resources), trimtab.MaxResources-2), "share what is scarce")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		at, c := "pool.resources."+name, p.Resources[name]
		v.name(at, "resource name", name)
		if slices.Contains([]string{trimtab.CPU, trimtab.Workers, trimtab.Memory}, name) {
			v.fail(at, fmt.Sprintf("%s is not one of the further resources", name), fmt.Sprintf("write pool: {%s: …}", name))
		}
		if trimtab.ResourceOf(name).Switch {
			v.fail(at, fmt.Sprintf("%s is a switch, which no pool shares", name), "remove it: best-effort jobs are frozen and killed where they are declared")
			continue
		}
		if trimtab.ResourceOf(name).Apart {
			v.fail(at, fmt.Sprintf("%s is shared by no pool", name), fmt.Sprintf("write it in the knob of a workload: %s: {gate: …}", name))
			continue
		}
		if !(c > 0 && c <= 1e15) {
			v.fail(at, fmt.Sprintf("%s is %v, want more than 0 and at most 1e15", clip(name), c), "write how much of it there is, in the unit that its actuator turns")
		}
	}
	if _, _, own := v.config.Own(); p.only() == "" && v.config.Objective != "drf" && (own || slices.Contains(objectives(), v.config.Objective)) {
		at := "objective"
		if !v.has(at) {
			at = first
		}
		v.fail(at, fmt.Sprintf("objective %s shares one resource, and the pool has several", v.config.Objective), "write objective: drf, or keep one resource in the pool")
	}
}

// checkFurtherBounds checks a knob's bounds on what is shared beside the first
// resource.
func (k *Knob) checkFurtherBounds(v *validator, where string) {
	p := &v.config.Pool
	if k.Memory != nil {
		at, b := where+".memory", k.Memory.bounds()
		k.Memory.Runtime.check(v, at+".runtime", k)
		switch {
		case k.Cgroup == "" && k.Kubernetes == nil:
			v.fail(at, "a process knob has no memory", "name a cgroup, or remove memory")
		case !k.Sized(p) && v.has(at+".margin"):
			v.fail(at+".margin", "margin where the pool shares memory", "remove it: the objective divides the pool's memory")
		case k.Sized(p) && !v.has(at+".max"):
			v.fail(at, "memory has no max", "write the most that each instance may have, such as max: 4GiB")
		case k.Sized(p) && v.has(at+".default"):
			v.fail(at+".default", "default where the pool shares no memory", "remove it: while nothing is known, the limit stays")
		case k.Memory.Probe != 0 && (!k.Sized(p) || k.Cgroup == "" || k.Memory.Runtime != nil):
			v.fail(at+".probe", "probe where trimtab does not size a cgroup by its use alone", "remove it: a probe needs a cgroup, no memory in the pool, and no runtime")
		case k.Memory.Probe != 0 && (k.Memory.Probe < time.Hour || k.Memory.Probe > 30*24*time.Hour):
			v.fail(at+".probe", fmt.Sprintf("probe is %v, want 1h to 720h", k.Memory.Probe), "write how often each instance is probed, such as 24h")
		case !(k.Memory.Margin >= 0 && k.Memory.Margin <= 10):
			v.fail(at+".margin", fmt.Sprintf("margin is %v, want 0 to 10", k.Memory.Margin), "write a part of the need, such as 0.1")
		default:
			b.checkPositives(v, at)
			b.checkOrder(v, at, Share{Name: trimtab.Memory, Capacity: float64(p.Memory)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Resources)) {
		if name == p.only() {
			continue // it was checked as the first
		}
		at, b := v.keyOf(where, name), k.Resources[name]
		if _, ok := p.Resources[name]; !ok {
			names := slices.Sorted(maps.Keys(p.Resources))
			hint := fmt.Sprintf("write pool: {resources: {%s: CAPACITY}}", clip(name))
			if len(names) > 0 && nearest(name, names) != "" {
				hint = suggest(name, names)
			}
			v.fail(at, fmt.Sprintf("the pool shares no %q", clip(name)), hint)
			continue
		}
		b.checkPositives(v, at)
		b.checkWhole(v, at, name)
		b.checkOrder(v, at, Share{Name: name, Capacity: p.Resources[name]})
	}
}

// Sized reports whether the memory limit follows what each instance needs, since the pool shares no
// memory.
func (k *Knob) Sized(p *Pool) bool {
	return k.Memory != nil && (k.Cgroup != "" || k.Kubernetes != nil) && p.Memory == 0
}

// MemoryAlone reports whether memory is all that is planned of the workload: it keeps what it has of
// the pool's resources.
func (k *Knob) MemoryAlone(p *Pool) bool {
	return k.Sized(p) && k.CPU == nil && len(k.Resources) == 0 && len(k.Admissions()) == 0
}

// checkWhole checks that bounds on what people count are whole numbers.
func (b *Bounds) checkWhole(v *validator, where, resource string) {
	r := trimtab.ResourceOf(resource)
	for _, f := range []struct {
		key   string
		value float64
	}{{"min", b.Min}, {"max", b.Max}, {"default", b.Default}} {
		if r.Step == 1 && f.value != math.Trunc(f.value) {
			v.fail(where+"."+f.key, fmt.Sprintf("%s is %v, want a whole number of %s", f.key, f.value, r.Unit), "round it")
		}
	}
}

// checkPositives checks that what is given of bounds is more than 0.
func (b *Bounds) checkPositives(v *validator, where string) {
	for key, value := range map[string]float64{"min": b.Min, "max": b.Max, "default": b.Default} {
		if v.has(where+"."+key) && !(value > 0) {
			v.fail(where+"."+key, fmt.Sprintf("%s is %v, want more than 0", key, value), "remove the key for its default")
		}
	}
}

// furtherSums refuses bounds that cross once defaults are filled in, and minimums
// that cannot all be kept.
func (v *validator) furtherSums() {
	shares := v.config.Pool.Shares()
	if len(shares) == 0 {
		return
	}
	for _, s := range shares[1:] {
		sum := 0.0
		for i := range v.config.Workloads {
			w := &v.config.Workloads[i]
			b, ok := w.Knob.BoundsOf(s.Name)
			if !ok || v.config.IsJob(w) {
				continue
			}
			if b.Min >= b.Max {
				v.fail(fmt.Sprintf("workloads[%d].knob", i), fmt.Sprintf("min %v of %s is more than max %v", amount(s.Name, b.Min), s.Name, amount(s.Name, b.Max)), "write both, between one unit and the pool's capacity; to leave it alone remove "+s.Name)
			}
			if w.Mode != trimtab.Off && !w.Knob.Several() {
				sum += b.Min
			}
		}
		if sum > s.Capacity*(1+1e-9) {
			at := "pool." + s.Name
			if s.Name != trimtab.Memory {
				at = "pool.resources." + s.Name
			}
			v.fail(at, fmt.Sprintf("the workloads' min of %s add up to %s, more than the capacity %s", s.Name, amount(s.Name, sum), amount(s.Name, s.Capacity)), "lower some min or raise the capacity")
		}
	}
}

func amount(resource string, v float64) string { return trimtab.AmountOf(resource, trimtab.Units(v)) }

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

// keyOf returns the path of the bounds of a further resource in the file.
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

// keyOfFirst returns the key of the capacity of the pool's first resource in the file.
func (p *Pool) keyOfFirst() string {
	if name := p.only(); name != "" {
		return "pool.resources." + name
	}
	return "pool." + p.Resource()
}

// only is the resource of a knob of a cgroup that has bounds of one alone beside memory, which is not
// cpu.
func (k *Knob) only() string {
	if k.CPU != nil || k.Process != nil || len(k.Resources) != 1 {
		return ""
	}
	for name := range k.Resources {
		return name
	}
	return ""
}

// firstResource returns the kind of the knob, the first resource of the pool that it sets, and the
// one that it may not set in addition.
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
