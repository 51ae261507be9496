package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// row is what clients saw of a load behind one proxy, and what the proxy took.
type row struct {
	Name string `json:"row"`
	// Missing says why there are no figures.
	Missing string `json:"missing,omitempty"`
	figures
	// Busy is the CPU time that the service used in the step, over its cores.
	Busy *float64 `json:"service_busy"`
	// Useful is the part of that for requests that were answered within the SLO, if all cost the same.
	// Unlike Goodput it does not depend on what a request costs in this row.
	Useful *float64 `json:"useful"`
	// Cost is the CPU time of a request just before, over the calibrated one: of two rows that
	// differ in it the capacity differs as well.
	Cost float64 `json:"cost_over_calibrated"`
	// CPU is the proxy's CPU time for each try, Added what it adds to the median of a small
	// request at low load, Resident its memory at the end; null: there is no proxy.
	CPU      *float64 `json:"cpu_us_per_request"`
	Added    *float64 `json:"added_ms"`
	Resident *float64 `json:"rss_mib"`
	// Others is the share of the machine that others used meanwhile.
	Others float64 `json:"others_share_of_machine"`
	// Limit is the maxconn that trimtab had set when the row began; null: it sets none.
	Limit *int `json:"limit,omitempty"`
}

// about is what a reader must know of a run to compare its figures.
type about struct {
	Machine  string  `json:"machine"`
	Service  string  `json:"service"`
	Seed     uint64  `json:"seed"`
	Cores    float64 `json:"cores"`
	Cost     float64 `json:"cost_ms"`
	Within   float64 `json:"slo_ms"`
	Patience float64 `json:"time_out_ms"`
	Retries  int     `json:"retries"`
	// Capacity is measured, or given.
	Capacity float64 `json:"capacity_per_s"`
	Given    bool    `json:"capacity_given,omitempty"`
}

func (a about) line() string {
	how := "highest rate with 99% in time"
	if a.Given {
		how = "given"
	}
	return fmt.Sprintf("%s: %s; seed %d; %.2f cores, %.2f ms of CPU time per request; SLO %.0f ms, time-out %.0f ms, %d retries\ncapacity %.1f requests/s (%s; CPU alone: %.1f)",
		a.Service, a.Machine, a.Seed, a.Cores, a.Cost, a.Within, a.Patience, a.Retries, a.Capacity, how, a.Cores/a.Cost*1000)
}

// result is a load with its rows.
type result struct {
	about
	// Load is over the capacity; the step lasts so many seconds.
	Load    float64 `json:"load"`
	Seconds float64 `json:"seconds"`
	// Sweep has the fixed limits that were tried for HAProxy, Maxconn the best of them.
	Sweep   []tried `json:"sweep,omitempty"`
	Maxconn int     `json:"maxconn,omitempty"`
	Rows    []row   `json:"rows"`
}

// A row is doubtful if others used more than tooBusy of the machine, if requests were sent more than
// tooLate ms late, if the cost of a request differs by more than otherCost from that with which the
// capacity was measured, or if the service used more than tooMuch times its cores.
const tooBusy, tooLate, otherCost, tooMuch = 0.10, 10, 0.15, 1.1

func (r *row) doubtful() bool {
	return r.Others > tooBusy || r.Behind > tooLate || math.Abs(r.Cost-1) > otherCost || r.Busy != nil && *r.Busy > tooMuch
}

func (r *result) json(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

func (r *result) text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s at %.1fx its capacity for %.0f s\n", r.Service, r.Load, r.Seconds)
	if r.Maxconn > 0 {
		fmt.Fprintf(w, "haproxy: maxconn %d", r.Maxconn)
		if len(r.Sweep) > 0 {
			var all []string
			for _, t := range r.Sweep {
				all = append(all, fmt.Sprintf("%d: %.3f", t.Maxconn, t.Goodput))
			}
			fmt.Fprintf(w, ", the best in hindsight of a sweep by goodput (%s)", strings.Join(all, ", "))
		}
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "row\tgoodput\tp50 ms\tp99 ms\tshed\tgave up\tfirst shed ms\tshed 5 s after\tcritical\tnormal\tlow\tservice busy\tuseful\tcost\tCPU µs/req\tadded ms\tRSS MiB\tothers\t")
	for _, row := range r.Rows {
		fmt.Fprintln(t, strings.Join(row.cells(), "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	for _, row := range r.Rows {
		switch {
		case row.Missing != "":
			fmt.Fprintf(w, "%s: %s\n", row.Name, row.Missing)
		case row.Others > tooBusy:
			fmt.Fprintf(w, "WARNING %s: others used %.0f%% of the machine; its figures are worth little\n", row.Name, 100*row.Others)
		case row.Behind > tooLate:
			fmt.Fprintf(w, "WARNING %s: 1%% of the requests were sent %.0f ms late or more\n", row.Name, row.Behind)
		case math.Abs(row.Cost-1) > otherCost:
			fmt.Fprintf(w, "WARNING %s: a request took %.2f times the CPU time with which the capacity was measured\n", row.Name, row.Cost)
		case row.Busy != nil && *row.Busy > tooMuch:
			fmt.Fprintf(w, "WARNING %s: the service had %.2f times its cores\n", row.Name, *row.Busy)
		}
		if row.Limit != nil {
			fmt.Fprintf(w, "%s: maxconn %d at the begin\n", row.Name, *row.Limit)
		}
		if row.Failed > 0 {
			fmt.Fprintf(w, "note %s: %.1f%% got another answer, or none\n", row.Name, 100*row.Failed)
		}
	}
	return nil
}

func (r *row) cells() []string {
	if r.Missing != "" {
		out := []string{r.Name}
		for range 17 {
			out = append(out, "–")
		}
		return out
	}
	return []string{
		r.Name, fmt.Sprintf("%.3f", r.Goodput), number(r.P50, 0), number(r.P99, 0), percent(r.Shed), percent(r.GaveUp), number(r.First, 0), fmt.Sprint(r.Late),
		maybePercent(r.Critical), maybePercent(r.Normal), maybePercent(r.Low), number(r.Busy, 2), number(r.Useful, 2), fmt.Sprintf("%.2f", r.Cost), number(r.CPU, 0), number(r.Added, 2), number(r.Resident, 0), fmt.Sprintf("%.0f%%", 100*r.Others),
	}
}

func percent(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

func maybePercent(v *float64) string {
	if v == nil {
		return "–"
	}
	return percent(*v)
}

func number(v *float64, digits int) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, *v)
}
