package prometheus

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab/colocation"
)

// maxTails limits the workloads whose tail is exported, maxPods their Servpods in sum,
// maxTailBytes about how many bytes their series have.
const maxTails, maxPods, maxTailBytes = 500, 500, 300_000

// tail remembers which Servpods of a workload have series.
type tail struct{ pods map[[2]string]bool }

// podMetrics are those that a Servpod has.
func podMetrics() []string {
	return []string{"trimtab_servpod_contribution", "trimtab_servpod_sojourn_seconds", "trimtab_servpod_growth_ratio", "trimtab_servpod_loadlimit_ratio", "trimtab_servpod_slacklimit_ratio"}
}

// podBytes is about how many bytes those series have.
func podBytes(workload string, key [2]string) int {
	return len(podMetrics()) * (80 + len(workload) + len(key[0]) + len(key[1]))
}

// reserveTail reserves bytes for series of tails, and reports whether they fit.
func (e *Exporter) reserveTail(n int) bool {
	if e.tailBytes+n > maxTailBytes {
		return false
	}
	e.tailBytes += n
	e.usage.bytes += n
	if n > 0 {
		e.fit()
	}
	return true
}

// tail exports the tail latency of a workload, and its Servpods' contributions to it.
func (e *Exporter) tail(c *colocation.Contributions) {
	t := e.tails[c.Workload]
	if t == nil {
		if len(e.tails) >= maxTails || !e.reserveTail(4*(60+len(c.Workload))) {
			return
		}
		t = &tail{pods: map[[2]string]bool{}}
		e.tails[c.Workload] = t
	}
	var slack, load, grew *float64
	if s, ok := c.Slack(); ok {
		slack = &s
	}
	if c.MaxLoad > 0 {
		share := c.Load / c.MaxLoad
		load = &share
	}
	parts := map[[2]string]float64{}
	if c.Growth != nil {
		changed := 0.0
		if c.Growth.Changed {
			changed = 1
		}
		grew = &changed
		for _, p := range c.Growth.Parts {
			parts[[2]string{p.Component, p.Host}] = p.Share
		}
	}
	e.set("trimtab_tail_seconds", c.Tail, c.Workload)
	e.set("trimtab_tail_slack_ratio", slack, c.Workload)
	e.set("trimtab_tail_load_ratio", load, c.Workload)
	e.set("trimtab_tail_grew", grew, c.Workload)
	seen := map[[2]string]bool{}
	for i := range c.Servpods {
		s := &c.Servpods[i]
		key := [2]string{s.Component, s.Host}
		seen[key] = true
		if !t.pods[key] {
			if e.pods >= maxPods || !e.reserveTail(podBytes(c.Workload, key)) {
				continue
			}
			e.pods++
			t.pods[key] = true
		}
		share := parts[key]
		for name, v := range map[string]*float64{
			"trimtab_servpod_contribution": &s.Contribution, "trimtab_servpod_sojourn_seconds": &s.Sojourn, "trimtab_servpod_growth_ratio": &share,
			"trimtab_servpod_loadlimit_ratio": s.LoadLimit, "trimtab_servpod_slacklimit_ratio": s.SlackLimit,
		} {
			e.set(name, v, c.Workload, s.Component, s.Host)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.pods), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if seen[key] {
			continue
		}
		delete(t.pods, key)
		e.pods--
		e.reserveTail(-podBytes(c.Workload, key))
		for _, name := range podMetrics() {
			e.set(name, nil, c.Workload, key[0], key[1])
		}
	}
}
