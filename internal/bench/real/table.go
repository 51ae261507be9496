package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/internal/bench/rig"
	"github.com/trimtab/trimtab/sim/services/shape"
)

// about is what a reader must know of a run to compare its figures.
type about struct {
	Machine string    `json:"machine"`
	Seed    uint64    `json:"seed"`
	Pool    float64   `json:"pool_cores"`
	Cost    [3]string `json:"cost_per_request"`
	// Others is the largest share of the machine that others used in a row.
	Others float64 `json:"others_share_of_machine"`
}

// tooBusy is the share of the machine used by others above which figures are
// doubtful.
const tooBusy = 0.10

// result is a scenario with its rows.
type result struct {
	about
	Scenario string  `json:"scenario"`
	Length   float64 `json:"seconds"`
	Rows     []*row  `json:"rows"`
}

// describe writes what holds for all rows.
func (h *host) describe(seed uint64) about {
	a := about{Machine: rig.DescribeMachine(), Seed: seed, Pool: h.Pool}
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
	for _, name := range shape.Names() {
		head = append(head, name)
	}
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

// extra names the columns that only some scenarios have.
func (r *result) extra() []string {
	for _, row := range r.Rows {
		switch {
		case len(row.Back) > 0:
			return []string{"back after s"}
		case row.SettledMoves != nil:
			return []string{"moves/10min", "windows broken"}
		}
	}
	return nil
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
		switch name {
		case "back after s":
			var all []string
			for _, b := range r.Back {
				all = append(all, seconds(b))
			}
			out = append(out, strings.Join(all, "/"))
		case "moves/10min":
			out = append(out, number(r.SettledMoves))
		case "windows broken":
			if r.Broken == nil {
				out = append(out, "–")
			} else {
				out = append(out, fmt.Sprint(*r.Broken))
			}
		}
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

func number(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *v)
}
