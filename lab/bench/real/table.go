package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// about is what a reader must know of a run to compare its figures.
type about struct {
	Machine string    `json:"machine"`
	Seed    uint64    `json:"seed"`
	Pool    float64   `json:"pool_cores"`
	Cost    [3]string `json:"cost_per_request"`
	// Others is the largest share of the machine that others used in a row.
	Others float64 `json:"others_share_of_machine"`

	names [3]string
}

// tooBusy is the share of the machine used by others above which figures are
// doubtful.
const tooBusy = 0.10

// result is a scenario with its rows.
type result struct {
	about
	Scenario string `json:"scenario"`
	// Over tells that the pool is at times too small for all.
	Over   bool    `json:"over,omitempty"`
	Length float64 `json:"seconds"`
	Rows   []*row  `json:"rows"`
}

// describe writes what holds for all rows.
func (h *host) describe(seed uint64) about {
	a := about{Machine: rig.DescribeMachine(), Seed: seed, Pool: h.Pool, names: h.names()}
	for i, s := range h.services {
		a.Cost[i] = fmt.Sprintf("%s %.1f ms", s.Name, float64(s.Cost.Microseconds())/1000)
	}
	return a
}

// json writes the result as one line.
func (r *result) json(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

// text writes the result as a table.
func (r *result) text(w io.Writer, what string) error {
	fmt.Fprintf(w, "\n%s\n%v; %s; seed %d; pool %v cores; CPU time per request: %s; others used %.0f%% of the machine\n",
		what, time.Duration(r.Length*float64(time.Second)), r.Machine, r.Seed, r.Pool, strings.Join(r.Cost[:], ", "), 100*r.Others)
	if r.Others > tooBusy {
		fmt.Fprintf(w, "WARNING: this machine was busy with something else; the figures are worth little\n")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"policy", "in time", "by thirds"}
	head = append(head, r.names[:]...)
	head = append(head, "p95 ms", "p99 ms", "core-h", "SLO missed min", "moves", "highest sum", "better after s")
	extra := r.extra()
	head = append(head, extra...)
	head = append(head, "cost", "others", "stolen", "trimtab cores", "warnings")
	fmt.Fprintln(t, strings.Join(head, "\t")+"\t")
	for _, row := range r.Rows {
		fmt.Fprintln(t, strings.Join(row.cells(extra), "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	for _, row := range r.Rows {
		for _, line := range row.Unsafe {
			fmt.Fprintf(w, "UNSAFE %s: %s\n", row.Policy, line)
		}
		for _, line := range row.Notes {
			fmt.Fprintf(w, "note %s: %s\n", row.Policy, line)
		}
	}
	return nil
}

// Columns that only some scenarios have.
const (
	columnBack      = "back after s"
	columnSettled   = "moves/10min"
	columnBroken    = "windows broken"
	columnWorth     = "njc/egalitarian/social/nash"
	columnRecovered = "99% in time after overload s"
)

// extra names those of this one.
func (r *result) extra() (out []string) {
	has := func(column string, of func(*row) bool) {
		if slices.ContainsFunc(r.Rows, of) {
			out = append(out, column)
		}
	}
	has(columnBack, func(row *row) bool { return len(row.Back) > 0 })
	has(columnSettled, func(row *row) bool { return row.Constant != nil })
	has(columnBroken, func(row *row) bool { return row.Constant != nil })
	has(columnWorth, func(*row) bool { return r.Over })
	has(columnRecovered, func(row *row) bool { return len(row.Recovered) > 0 })
	return out
}

// cell is a figure of a column that only some scenarios have.
func (r *row) cell(column string) string {
	switch column {
	case columnBack:
		return each(r.Back)
	case columnRecovered:
		return each(r.Recovered)
	case columnSettled:
		if r.Constant == nil {
			return "–"
		}
		return fmt.Sprintf("%.1f", r.Constant.Moves)
	case columnWorth:
		w := r.Welfare
		return fmt.Sprintf("%.3f/%.3f/%.3f/%.3f", w.NJC, w.Egalitarian, w.Social, w.Nash)
	}
	if r.Constant == nil || r.Constant.Broken == nil {
		return "–"
	}
	return fmt.Sprint(*r.Constant.Broken)
}

func each(all []*float64) string {
	var out []string
	for _, v := range all {
		out = append(out, seconds(v))
	}
	return strings.Join(out, "/")
}

func (r *row) cells(extra []string) []string {
	out := []string{r.Policy, percent(r.InTime), thirds(r.Thirds)}
	var p95, p99 []string
	for _, f := range r.Services {
		out = append(out, percent(f.InTime))
		p95, p99 = append(p95, fmt.Sprintf("%.0f", f.P95)), append(p99, fmt.Sprintf("%.0f", f.P99))
	}
	out = append(out, strings.Join(p95, "/"), strings.Join(p99, "/"), fmt.Sprintf("%.4f", r.CoreHours), fmt.Sprintf("%.1f", r.Missed),
		fmt.Sprint(r.Moves), fmt.Sprintf("%.3f", r.Highest), seconds(r.Better))
	for _, name := range extra {
		out = append(out, r.cell(name))
	}
	own := "–"
	if r.OwnCores > 0 {
		own = fmt.Sprintf("%.3f", r.OwnCores)
	}
	return append(out, fmt.Sprintf("%.2f", r.Cost), fmt.Sprintf("%.0f%%", 100*r.Others), fmt.Sprintf("%.1f%%", 100*r.Stolen), own, fmt.Sprint(len(r.Warnings)))
}

func percent(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

func thirds(v [3]float64) string { return fmt.Sprintf("%.0f/%.0f/%.0f", 100*v[0], 100*v[1], 100*v[2]) }

func seconds(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f", *v)
}
