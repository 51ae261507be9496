package prometheus

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// maxCounted limits the workloads whose performance counters are exported, maxCountedBytes about
// how many bytes their series have.
const maxCounted, maxCountedBytes = 1000, 600_000

// counterMetrics are the metrics of performance counters, by quantity.
func counterMetrics() map[quantity.Quantity]string {
	return map[quantity.Quantity]string{
		quantity.CPI:             "trimtab_perf_cycles_per_instruction",
		quantity.MPKI:            "trimtab_perf_misses_per_kiloinstruction",
		quantity.RPKI:            "trimtab_perf_references_per_kiloinstruction",
		quantity.TaskClock:       "trimtab_perf_task_clock_cores",
		quantity.ContextSwitches: "trimtab_perf_context_switches_per_second",
		quantity.PageFaults:      "trimtab_perf_page_faults_per_second",
		quantity.Migrations:      "trimtab_perf_cpu_migrations_per_second",
		quantity.RunDelay:        "trimtab_perf_run_delay_ratio",
	}
}

// counters exports the performance counters of a workload. A missing one has no series; the bytes
// reserved for a workload are kept.
func (e *Exporter) counters(v *trimtab.Estimate) {
	if !e.counted[v.Workload] {
		n := len(counterMetrics()) * (70 + len(v.Workload))
		if len(v.Counters) == 0 || len(e.counted) >= maxCounted || e.countedBytes+n > maxCountedBytes {
			return
		}
		e.counted[v.Workload] = true
		e.countedBytes += n
		e.usage.bytes += n
		e.fit()
	}
	values := map[string]*float64{}
	for i := range v.Counters {
		if in := &v.Counters[i]; in.Missing == "" {
			values[in.Name] = &in.Value
		}
	}
	for q, name := range counterMetrics() {
		e.set(name, values[string(q)], v.Workload)
	}
}
