package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// processes are those whose use is told, in the order of the table.
func processes() []string { return []string{"planner", "analyzer", "console", "nats", "agents"} }

// printTable prints one column per size.
func printTable(out io.Writer, all []*result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(*result) string) {
		fmt.Fprint(w, name)
		for _, r := range all {
			fmt.Fprint(w, "\t", cell(r))
		}
		fmt.Fprintln(w, "\t")
	}
	row("agents", func(r *result) string { return fmt.Sprint(r.agents) })
	row("of them leaf nodes", func(r *result) string { return fmt.Sprint(r.leaves) })
	row("workloads", func(r *result) string { return fmt.Sprint(r.workloads) })
	row("knobs", func(r *result) string { return fmt.Sprint(r.workloads * r.instances) })
	row("ready after, s", func(r *result) string { return fmt.Sprintf("%.0f", r.ready.Seconds()) })
	row("rounds", func(r *result) string { return fmt.Sprint(r.rounds) })
	row("plans that reached agents", func(r *result) string { return fmt.Sprint(r.report.Plans) })
	row("executed and answered in their round", func(r *result) string {
		return fmt.Sprintf("%d of %d", r.report.Done, max(r.report.Plans, r.rounds))
	})
	row("plan to last answer p50, s", func(r *result) string { return fmt.Sprintf("%.2f", r.report.P50.Seconds()) })
	row("plan to last answer p99, s", func(r *result) string { return fmt.Sprintf("%.2f", r.report.P99.Seconds()) })
	row("until every host had answered, s", func(r *result) string { return fmt.Sprintf("%.2f", r.report.Heard.Seconds()) })
	row("largest plan (its largest message), KiB", func(r *result) string {
		return fmt.Sprintf("%.0f (%.0f)", float64(r.report.Bytes)/1024, float64(r.report.Largest)/1024)
	})
	for _, status := range []string{"actions", "written", "equal", "refused", "failed", "plan refused"} {
		row(status, func(r *result) string { return fmt.Sprint(r.report.Counts[status]) })
	}
	for _, name := range processes() {
		row("CPU of "+name+", cores (waited for it)", func(r *result) string {
			return fmt.Sprintf("%.2f (%.2f)", r.used[name].cores, r.used[name].waited)
		})
	}
	if slices.ContainsFunc(all, func(r *result) bool { return r.used["agent"].resident > 0 }) {
		row("CPU of the real agent, cores", func(r *result) string { return fmt.Sprintf("%.4f", r.used["agent"].cores) })
		row("memory of the real agent (peak), MiB", func(r *result) string {
			return fmt.Sprintf("%.1f (%.1f)", r.used["agent"].resident, r.used["agent"].peak)
		})
	}
	for _, name := range processes() {
		row("memory of "+name+" (peak), MiB", func(r *result) string {
			return fmt.Sprintf("%.0f (%.0f)", r.used[name].resident, r.used[name].peak)
		})
	}
	row("NATS store, MiB", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.store)/(1<<20)) })
	for _, name := range []string{"ESTIMATES", "HOLDINGS", "PLANS", "PARTS", "OUTCOMES", "KV_snapshots"} {
		row("of it "+name+", MiB", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.streams[name])/(1<<20)) })
	}
	for i, path := range []string{"/", "/api/v1/status"} {
		row("console GET "+path, func(r *result) string {
			if i >= len(r.views) {
				return "-"
			}
			return fmt.Sprintf("%.2f s, %.0f KiB", r.views[i].took.Seconds(), float64(r.views[i].bytes)/1024)
		})
	}
	for _, name := range processes()[:3] {
		row("/metrics of "+name+", KiB", func(r *result) string { return fmt.Sprintf("%.0f", float64(r.used[name].metrics)/1024) })
	}
	_ = w.Flush() // to a terminal or a pipe
	for _, r := range all {
		for _, said := range r.said {
			fmt.Fprintf(out, "%d agents: %s\n", r.agents, said)
		}
	}
}
