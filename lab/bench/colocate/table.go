package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/planner/colocate"
)

// about says under which conditions rows were measured.
type about struct {
	Machine string  `json:"machine"`
	Load    string  `json:"load"`
	Seconds float64 `json:"seconds"`
	Seed    uint64  `json:"seed"`
	Factor  float64 `json:"slo_factor"`
	Weight  int     `json:"be_weight"`
	Alone   solo    `json:"alone"`
}

func (b *bench) about() about {
	return about{rig.DescribeMachine(), b.load.origin, b.Seconds, b.Seed, b.Factor, b.Weight, b.alone}
}

// result is what a run prints.
type result struct {
	About about  `json:"about"`
	Rows  []*row `json:"rows"`
}

func (r *result) json(out io.Writer) error {
	if err := json.NewEncoder(out).Encode(r); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// spread is a mean over repetitions with the least and the greatest.
type spread struct{ mean, least, greatest float64 }

func over(rows []*row, of func(*row) float64) spread {
	s := spread{0, math.Inf(1), math.Inf(-1)}
	for _, r := range rows {
		v := of(r)
		s.mean += v / float64(len(rows))
		s.least, s.greatest = min(s.least, v), max(s.greatest, v)
	}
	return s
}

// cell prints the mean, and the range where there are several repetitions.
func (s spread) cell(n int, verb string, scale float64) string {
	text := fmt.Sprintf(verb, s.mean*scale)
	if n > 1 {
		text += fmt.Sprintf(" ("+verb+"-"+verb+")", s.least*scale, s.greatest*scale)
	}
	return text
}

// of returns the rows of a policy.
func (r *result) of(policy string) []*row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(r *row) bool { return r.Policy != policy })
}

// text prints the table.
func (r *result) text(out io.Writer, policies []string) error {
	a := &r.About
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %.0f s a row, best-effort jobs of weight %d\n", a.Machine, a.Seconds, a.Weight)
	fmt.Fprintf(&b, "load: %s, from %.0f%% to %.0f%% of %.0f requests/s\n", a.Load, 100*low, 100*high, a.Alone.Max)
	fmt.Fprintf(&b, "SLO: %.0f%% within %.1f ms", 100*fraction, a.Alone.SLO)
	if a.Alone.P99 > 0 {
		fmt.Fprintf(&b, ", %v x the p99 alone at half load", a.Factor)
	}
	fmt.Fprintf(&b, "; a request costs nginx %.2f ms and redis %.2f ms\n\n", a.Alone.Nginx, a.Alone.Redis)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tEMU\tBE\tx HERACLES\tSLO SHARE %\tIN TIME %\tP95 ms\tP99 ms\tWORST\tKILLS\tLOST\tOWN cores\tOTHERS %")
	base := over(r.of(colocate.Heracles), func(r *row) float64 { return r.BE })
	for _, p := range policies {
		rows := r.of(p)
		n := len(rows)
		if n == 0 {
			continue
		}
		be := over(rows, func(r *row) float64 { return r.BE })
		ratio := "-"
		if base.mean > 0 && p != alone {
			ratio = fmt.Sprintf("%.2f", be.mean/base.mean)
		}
		mean := func(verb string, scale float64, of func(*row) float64) string {
			return fmt.Sprintf(verb, scale*over(rows, of).mean)
		}
		fmt.Fprintln(w, strings.Join([]string{
			p,
			over(rows, func(r *row) float64 { return r.EMU }).cell(n, "%.2f", 1),
			be.cell(n, "%.2f", 1), ratio,
			over(rows, func(r *row) float64 { return r.Held }).cell(n, "%.1f", 100),
			mean("%.2f", 100, func(r *row) float64 { return r.InTime }),
			over(rows, func(r *row) float64 { return r.P95 }).cell(n, "%.1f", 1),
			over(rows, func(r *row) float64 { return r.P99 }).cell(n, "%.1f", 1),
			fmt.Sprintf("%.1f", over(rows, func(r *row) float64 { return r.Worst }).greatest),
			mean("%.1f", 1, func(r *row) float64 { return float64(r.Kills) }),
			mean("%.3f", 1, func(r *row) float64 { return r.Lost }),
			mean("%.3f", 1, func(r *row) float64 { return r.Controller }),
			mean("%.1f", 100, func(r *row) float64 { return r.Others }),
		}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	r.remarks(&b)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// busy is from which share of the machine on others disturb the figures.
const busy = 0.05

// remarks prints what is to be known of the rows.
func (r *result) remarks(b *strings.Builder) {
	lag, others, seen := 0.0, 0.0, map[string]bool{}
	for _, row := range r.Rows {
		lag, others = max(lag, row.Lag), max(others, row.Others)
		for _, note := range row.Notes {
			if !seen[note] {
				seen[note] = true
				fmt.Fprintf(b, "%s, repetition %d: %s\n", row.Policy, row.Repeat, note)
			}
		}
	}
	fmt.Fprintf(b, "\nThe generator sent 99%% of the requests within %.1f ms of their time in every row; latency counts from that time.\n", lag)
	if others > busy {
		fmt.Fprintf(b, "Others used up to %.0f%% of the machine during a row: these figures do not tell the policies apart.\n", 100*others)
	}
}
