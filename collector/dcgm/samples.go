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

// Reasons why a value is missing, in addition to those of package poll.
const (
	unreported = "not told by the exporter"
	differs    = "different values are told"
	shared     = "of a GPU that several share"
	wholeGPU   = "of the whole GPU, not of the MIG instance"
)

// kind is a quantity, with the metrics from which it can be read, the preferred one first, and the
// factors that convert their units.
type kind struct {
	quantity quantity.Quantity
	metrics  []string
	units    []float64
	// hostOnly says that there is no such quantity of a pod.
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

// value is a number, or the reason why it is missing.
type value struct {
	v       float64
	missing string
}

// whole returns a metric of the whole device: from the line without a holder, or from the lines of
// all holders if they agree.
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

// of returns a metric of one holder's use of the device.
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
		return value{missing: unreported}
	case math.IsNaN(v):
		return value{missing: differs}
	}
	return value{v: v}
}

// best returns the value of the most preferred metric that has one. If none has, it returns why the
// most preferred is missing.
func (k kind) best(d device, read func(metric string) value) (out value) {
	for i, metric := range k.metrics {
		if d.mig != "" && metric == util { // DCGM measures this metric of whole GPUs only
			continue
		}
		v := read(metric)
		if v.missing == "" {
			return value{v: v.v * k.units[i]}
		}
		if out.missing == "" || out.missing == unreported {
			out = v
		}
	}
	return out
}

// byName compares devices by UUID and MIG instance.
func byName(a, b device) int { return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.mig, b.mig)) }

// ofHost returns the samples of all devices. Power is reported of whole GPUs only.
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
			case !told || before.missing == unreported:
				drawn[of] = v
			case v.missing != unreported && v != before:
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

// ofPods returns the samples of pods whose workload is known. Each sample sums over all devices of
// the pod; it is missing if the value of one device is.
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

// about describes the devices of a pod for people.
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
