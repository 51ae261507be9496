package dcgm

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/quantity"
)

// The reasons why a value is missing, beside those of package poll.
const (
	untold   = "not told by the exporter"
	differs  = "different values are told"
	shared   = "of a GPU that several share"
	wholeGPU = "of the whole GPU, not of the MIG instance"
)

// kind is a quantity, and the metrics that tell it, the best first, with their units.
type kind struct {
	quantity quantity.Quantity
	metrics  []string
	units    []float64
	// hostOnly: pods have none of it.
	hostOnly bool
}

func kinds() []kind {
	return []kind{
		{quantity.GPUUse, []string{active, util}, []float64{1, 0.01}, false},
		{quantity.GPUMemory, []string{used}, []float64{1 << 20}, false},
		{quantity.GPUMemoryFree, []string{free}, []float64{1 << 20}, true},
		{quantity.GPUPower, []string{power}, []float64{1}, false},
	}
}

// value is a number, or why there is none.
type value struct {
	v       float64
	missing string
}

// whole is what a metric says of a device: the line of nobody in particular, or what the lines
// of all holders say alike.
func (g *gpu) whole(metric string) value {
	all := g.values[metric]
	v, told := all[holder{}]
	for _, of := range all {
		if !told {
			v, told = of, true
		}
		if _, plain := all[holder{}]; !plain && of != v {
			v = math.NaN()
		}
	}
	return found(v, told)
}

// of is what a metric says of one holder.
func (g *gpu) of(metric string, h holder) value {
	v, told := g.values[metric][h]
	_, plain := g.values[metric][holder{}]
	if byProcess := plain && (metric == util || metric == used); told && len(g.holders) > 1 && !byProcess {
		return value{missing: shared}
	}
	return found(v, told)
}

func found(v float64, told bool) value {
	switch {
	case !told:
		return value{missing: untold}
	case math.IsNaN(v):
		return value{missing: differs}
	}
	return value{v: v}
}

// best is what the first metric says that has a value, else why the first has none.
func (k kind) best(d device, read func(metric string) value) (out value) {
	for i, metric := range k.metrics {
		if d.mig != "" && metric == util { // it is counted of whole GPUs alone
			continue
		}
		v := read(metric)
		if v.missing == "" {
			return value{v: v.v * k.units[i]}
		}
		if out.missing == "" || out.missing == untold {
			out = v
		}
	}
	return out
}

// byName orders devices.
func byName(a, b device) int { return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.mig, b.mig)) }

// ofHost makes the samples of devices. Power is that of whole GPUs.
func ofHost(all map[device]*gpu) (samples []*trimtab.Sample) {
	add := func(q quantity.Quantity, d device, v value, note string) {
		s := poll.OfHost(q, d.name())
		s.Value, s.Missing, s.Note = v.v, v.missing, note
		samples = append(samples, s)
	}
	drawn := map[device]value{}
	notes := map[device]string{}
	for _, d := range slices.SortedFunc(maps.Keys(all), byName) {
		g := all[d]
		for _, k := range kinds() {
			v := k.best(d, g.whole)
			if k.quantity != quantity.GPUPower {
				add(k.quantity, d, v, g.about)
				continue
			}
			of := device{uuid: d.uuid}
			switch before, told := drawn[of]; {
			case !told || before.missing == untold:
				drawn[of] = v
			case v.missing != untold && v != before:
				drawn[of] = value{missing: differs}
			}
			notes[of] = strings.TrimSuffix(g.about, ", MIG "+g.profile)
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(drawn), byName) {
		add(quantity.GPUPower, d, drawn[d], notes[d])
	}
	return samples
}

// ofPods makes the samples of pods whose workload is known: over all devices of a pod, or
// missing where that of one is.
func ofPods(all map[device]*gpu, host string, workload func(namespace, pod string) string) (samples []*trimtab.Sample) {
	type pod struct{ namespace, name string }
	pods := map[pod]map[device]holder{}
	for d, g := range all {
		for h := range g.holders {
			p := pod{h.namespace, h.pod}
			if p.name == "" {
				continue
			}
			if pods[p] == nil {
				pods[p] = map[device]holder{}
			}
			if before, told := pods[p][d]; !told || h.job < before.job {
				pods[p][d] = h
			}
		}
	}
	for p, devices := range pods {
		of := workload(p.namespace, p.name)
		if of == "" {
			continue
		}
		for _, k := range kinds() {
			if k.hostOnly {
				continue
			}
			s := &trimtab.Sample{Workload: of, Host: host, Instance: p.name, Quantity: k.quantity, Note: about(all, devices)}
			for _, d := range slices.SortedFunc(maps.Keys(devices), byName) {
				v := k.best(d, func(metric string) value { return all[d].of(metric, devices[d]) })
				if d.mig != "" && k.quantity == quantity.GPUPower && v.missing == "" {
					v = value{missing: wholeGPU}
				}
				s.Value, s.Missing = s.Value+v.v, cmp.Or(s.Missing, v.missing)
			}
			samples = append(samples, s)
		}
	}
	return samples
}

// about says for people what a pod has.
func about(all map[device]*gpu, devices map[device]holder) string {
	count := map[string]int{}
	for d := range devices {
		what := "GPU"
		if d.mig != "" {
			what = fmt.Sprintf("MIG %.30s", all[d].profile)
		}
		if n := len(all[d].holders); n > 1 {
			what += fmt.Sprintf(" shared by %d", n)
		}
		count[what]++
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		if len(out) == 8 {
			return strings.Join(out, ", ") + ", …"
		}
		out = append(out, fmt.Sprintf("%d x %s", count[what], what))
	}
	return strings.Join(out, ", ")
}
