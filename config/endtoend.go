package config

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// EndToEnd is the objective that divides the pool among the components of one
// application.
const EndToEnd = "end-to-end"

// maxComponents bounds the workloads of one application.
const maxComponents = 256

// Application returns the workload whose requests all others serve; nil unless
// the objective is end-to-end.
func (c *Config) Application() *Workload {
	if c.Objective != EndToEnd {
		return nil
	}
	for i := range c.Workloads {
		if c.Workloads[i].Name == c.Planning.Entry {
			return &c.Workloads[i]
		}
	}
	return nil
}

// shareSLO gives all workloads of an application the SLO of its entry.
func (c *Config) shareSLO() {
	entry := c.Application()
	if entry == nil {
		return
	}
	slo := entry.SLO
	if entry.Performance != "" && slo.Latency > 0 {
		slo = SLO{Performance: slo.Fraction} // the query answers with a fraction
	}
	slo.Entry = entry.Name
	for i := range c.Workloads {
		if w := &c.Workloads[i]; w.Mode != trimtab.Off && !c.IsJob(w) {
			w.SLO = slo
		}
	}
}

// isComponent reports whether w is planned for by the SLO of another workload.
func (w *Workload) isComponent(v *validator) bool {
	return v.config.Objective == EndToEnd && w.Name != v.config.Planning.Entry
}

// application checks the objective end-to-end.
func (v *validator) application() {
	c := v.config
	if c.Objective != EndToEnd {
		if v.has("planning.entry") {
			v.warn("planning.entry", fmt.Sprintf("objective %s has no entry", clip(c.Objective)), "write objective: end-to-end, or remove the key")
		}
		return
	}
	entry := c.Application()
	switch {
	case !v.has("planning.entry"):
		v.fail("objective", "objective end-to-end has no entry", "write planning: {entry: NAME} with the workload whose requests all others serve")
	case entry == nil:
		v.fail("planning.entry", fmt.Sprintf("no workload %q", clip(c.Planning.Entry)), "write the name of the workload whose requests all others serve")
	case entry.Mode == trimtab.Off || entry.SLO.Target() == 0:
		v.fail("planning.entry", fmt.Sprintf("workload %q has no slo that is planned for", clip(entry.Name)), "write slo: {latency: 200ms, fraction: 0.99} for it, and another mode than off")
	}
	n := 0
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Mode == trimtab.Off || c.IsJob(w) {
			continue
		}
		n++
		if at := fmt.Sprintf("workloads[%d].slo", i); w.isComponent(v) && v.has(at) {
			v.warn(at, fmt.Sprintf("the slo of %q does not count: objective end-to-end has that of %q", clip(w.Name), clip(c.Planning.Entry)), "remove it")
		}
	}
	if n > maxComponents {
		v.fail("workloads", fmt.Sprintf("%d workloads in one application, limit %d", n, maxComponents), "plan for the ones that matter, and set mode: off for the others")
	}
}
