package config

import (
	"fmt"
)

// checkFallback checks what stands in for a workload's performance.
func (w *Workload) checkFallback(v *validator, at string) {
	f, where := &w.Fallback, at+".fallback"
	if !v.has(where) {
		return
	}
	if !v.has(where+".proxy") && !v.has(where+".profile") && !v.has(where+".demand") {
		v.fail(where, "fallback is empty", "write fallback: {demand: 2}, {profile: FILE} or {proxy: PromQL}")
		return
	}
	if !w.Knob.Declared() {
		v.fail(where, "a fallback without a knob", "trimtab plans only for a workload with a knob: write knob: …, or remove fallback")
	}
	if f.Proxy != "" && w.Performance == "" && w.SLO.Latency == 0 {
		v.fail(where+".proxy", "proxy replaces a performance query, and there is none", "write it as performance: PromQL")
	}
	if v.has(where+".profile") && f.Profile == "" {
		v.fail(where+".profile", "profile names no file", "write the path of a CSV file, or remove the key")
	}
	if !v.has(where + ".demand") {
		return
	}
	if !(f.Demand > 0 && f.Demand <= 1e15) {
		v.fail(where+".demand", fmt.Sprintf("demand is %v, want more than 0", f.Demand), "write the amount that is enough, in the pool's resource")
	} else if b := w.Knob.Bounds(); b != nil && b.Max > 0 && f.Demand > b.Max {
		v.warn(where+".demand", fmt.Sprintf("demand %v is more than the knob's max %v", f.Demand, b.Max), "it will never have that much")
	}
}
