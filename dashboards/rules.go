package dashboards

import (
	"fmt"
	"strconv"
	"strings"
)

// runbooks is where the pages of docs/runbooks are read.
const runbooks = "https://github.com/trimtab/trimtab/blob/main/docs/runbooks/"

// recording is a recording rule of Prometheus.
type recording struct {
	name, expr string
}

// recordings returns the recording rules for alerts, and for a site's own dashboards.
func recordings() []recording {
	return []recording{
		{"trimtab:workload_attainment:ratio", attainment},
		{"trimtab:workload_refused:ratio", refused},
		{"trimtab:workload_allocation:sum", allocation},
		{"trimtab:workload_supply:ratio", allocation + ` / (max by (namespace, job, workload) (trimtab_workload_demand{@}) > 0)`},
		{"trimtab:pool_given_out:ratio", givenOut},
		{"trimtab:host_free:ratio", hostFree},
		{"trimtab:spans_lost:ratio_rate5m", lost},
		{"trimtab:stage_lag_seconds:p99_rate5m", `histogram_quantile(0.99, sum by (namespace, job, stage, le) (rate(trimtab_stage_lag_seconds_bucket{@}[5m])))`},
		{"trimtab:action_duration_seconds:p99_rate5m", `histogram_quantile(0.99, sum by (namespace, job, le) (rate(trimtab_action_duration_seconds_bucket{@}[5m])))`},
	}
}

// alert is a rule that calls a person: at once (critical) or in working hours
// (warning).
type alert struct {
	name, expr, after, severity string
	summary, description        string
}

// maxAlerts limits the alerts that may wake a person.
const maxAlerts = 10

func alerts() []alert {
	return []alert{
		{
			name: "TrimtabDown", after: "2m", severity: "critical",
			expr:        `up{job=~".*trimtab.*"} == 0 or (absent(trimtab_build_info) unless on () up{job=~".*trimtab.*"} == 0)`,
			summary:     "trimtab is not running, or cannot be scraped",
			description: "No metrics from {{ with $labels.instance }}{{ . }}{{ else }}any trimtab{{ end }} for 2 minutes. Where the actuator is gone, the baselines are back.",
		},
		{
			name: "TrimtabNotReady", after: "5m", severity: "warning",
			expr:        `min by (namespace, job, instance, stage) (trimtab_stage_ready) == 0`,
			summary:     "{{ $labels.stage }} of trimtab is not ready",
			description: "{{ $labels.stage }} on {{ $labels.instance }} has not been ready for 5 minutes; GET /-/ready there says why.",
		},
		{
			name: "TrimtabNoPlan", after: "1m", severity: "warning",
			expr:        `time() - max by (namespace, job, pool) (trimtab_pool_plan_timestamp_seconds) > 300`,
			summary:     "no plan for pool {{ $labels.pool }}",
			description: "The newest plan for pool {{ $labels.pool }} is {{ $value | humanizeDuration }} old. When the lease runs out, the baselines come back.",
		},
		{
			name: "TrimtabLeaseExpired", severity: "critical",
			expr:        `increase(trimtab_actuator_leases_expired_total[15m]) > 0`,
			summary:     "trimtab gave every allocation back on {{ $labels.instance }}",
			description: "The lease ran out on {{ $labels.instance }}, since no plan arrived, and the recorded baselines were restored.",
		},
		{
			name: "TrimtabWorkloadHeld", after: "15m", severity: "warning",
			expr:        `max by (namespace, job, workload) (trimtab_workload_held) == 1 and on (namespace, job, workload) trimtab_workload_slo_performance`,
			summary:     "trimtab knows too little of {{ $labels.workload }}",
			description: "An input of {{ $labels.workload }} has been missing or stale for 15 minutes, so that it is not lowered. trimtab explain {{ $labels.workload }} says which.",
		},
		{
			name: "TrimtabWorkloadBelowSLO", after: "15m", severity: "warning",
			expr:        `trimtab:workload_attainment:ratio < 0.95`,
			summary:     "{{ $labels.workload }} misses its SLO",
			description: "{{ $labels.workload }} has reached less than 95% of the performance that its SLO asks for, for 15 minutes; now {{ $value | humanizePercentage }}.",
		},
		{
			name: "TrimtabSheds", after: "10m", severity: "warning",
			expr:        `trimtab:workload_refused:ratio > 0.01`,
			summary:     "requests to {{ $labels.workload }} are refused",
			description: "Gates have refused more than 1% of the requests to {{ $labels.workload }} for 10 minutes, longer than new instances take to start; now {{ $value | humanizePercentage }}. trimtab explain {{ $labels.workload }} says what it would take not to.",
		},
		{
			name: "TrimtabShedsCritical", after: "2m", severity: "critical",
			expr:        `max by (namespace, job, workload, class) (trimtab_workload_refused_per_second{class="critical"}) > 0`,
			summary:     "critical requests to {{ $labels.workload }} are refused",
			description: "Gates have refused critical requests to {{ $labels.workload }} for 2 minutes; now {{ $value | humanize }} per second. What is left does not serve even the most important.",
		},
		{
			name: "TrimtabWriteFailed", severity: "warning",
			expr: `increase(trimtab_actuator_actions_total{status="failed"}[15m]) > 0` +
				` or increase(trimtab_actuator_restores_total{status="failed"}[15m]) > 0` +
				` or increase(trimtab_actuator_journal_errors_total[15m]) > 0` +
				` or min_over_time(trimtab_host_unmet{what!="claims"}[5m]) > 0`,
			summary:     "trimtab could not write on {{ $labels.instance }}",
			description: "In the last 15 minutes a knob was not written, not restored, or the journal could not be written on {{ $labels.instance }}; or for 5 minutes something that the configuration asks for has not been in force there. trimtab status and the log there have the cause.",
		},
		{
			name: "TrimtabInputLost", after: "5m", severity: "warning",
			expr: `trimtab:spans_lost:ratio_rate5m > 0.01` +
				` or sum by (namespace, job) (increase(trimtab_stage_panics_total[15m])) > 0` +
				` or sum by (namespace, job) (increase(trimtab_bus_unreadable_total[15m])) > 0`,
			summary:     "trimtab loses what it is told",
			description: "{{ $labels.job }} refuses or drops more than 1% of its spans, or put values aside that it could not handle. What it does not see it cannot plan for.",
		},
	}
}

// rulesYAML prints the rules as Prometheus reads them. Strings are quoted as
// JSON does, which YAML understands.
func rulesYAML() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Generated from dashboards/rules.go by `make generate`; do not edit.")
	line("groups:")
	line("  - name: trimtab.recordings")
	line("    rules:")
	for _, r := range recordings() {
		line("      - record: %s", r.name)
		line("        expr: %s", quote(inRule(r.expr)))
	}
	line("  - name: trimtab.alerts")
	line("    rules:")
	for _, a := range alerts() {
		line("      - alert: %s", a.name)
		line("        expr: %s", quote(inRule(a.expr)))
		if a.after != "" {
			line("        for: %s", a.after)
		}
		line("        labels:")
		line("          severity: %s", a.severity)
		line("        annotations:")
		line("          summary: %s", quote(a.summary))
		line("          description: %s", quote(a.description))
		line("          runbook_url: %s", runbooks+a.name+".md")
	}
	return []byte(b.String())
}

// quote prints printable ASCII between double quotes.
func quote(s string) string { return strconv.QuoteToASCII(s) }
