package config

import (
	"fmt"
	"maps"
	"slices"
)

// maxServpods bounds the components whose thresholds are declared.
const maxServpods = 1000

// checkServpods checks the thresholds of components.
func (w *Workload) checkServpods(v *validator, at string) {
	where := at + ".servpods"
	if v.has(at+".max_load") && !(w.MaxLoad > 0 && w.MaxLoad <= 1e9) {
		v.fail(at+".max_load", fmt.Sprintf("max_load is %v, want more than 0 and at most 1e9", w.MaxLoad), "write requests per second, such as 400, or remove the key")
	}
	if len(w.Servpods) > maxServpods {
		v.fail(where, fmt.Sprintf("%d components, want at most %d", len(w.Servpods), maxServpods), "declare those of one workload")
		return
	}
	if len(w.Servpods) > 0 && w.SLO.Latency == 0 {
		v.fail(where, "thresholds without an SLO of latency", "write slo: {latency: 200ms, fraction: 0.99}, or remove servpods")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Servpods)) {
		s, of := w.Servpods[name], where+"."+name
		if name == "" || len(name) > 253 {
			v.fail(where, fmt.Sprintf("component %.40q", name), "write its service.name, of 1 to 253 bytes")
			continue
		}
		limits := map[string]float64{"loadlimit": s.LoadLimit, "slacklimit": s.SlackLimit}
		for _, key := range []string{"loadlimit", "slacklimit"} {
			if x := limits[key]; v.has(of+"."+key) && !(x > 0 && x <= 1) {
				v.fail(of+"."+key, fmt.Sprintf("%s is %v, want more than 0, at most 1", key, x), "write a share, such as 0.8, or remove the key")
			}
		}
		if !v.has(of+".loadlimit") && !v.has(of+".slacklimit") {
			v.fail(of, "no threshold", "write {loadlimit: 0.8}, {slacklimit: 0.1} or both")
		}
	}
}
