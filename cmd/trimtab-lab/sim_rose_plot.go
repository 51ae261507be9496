package main

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/rose"
	"github.com/trimtab/trimtab/sim/figure"
)

// This file draws the paper's figures 13 to 18.

// roseRound is the time between two values of a history, in seconds.
const roseRound = 10

// plot draws what was run.
func (c *simRoseCmd) plot(rows []rose.Row) error {
	of := map[string][]rose.Row{}
	for i := range rows {
		of[rows[i].Part] = append(of[rows[i].Part], rows[i])
	}
	var all []drawn
	for i := range of[rose.BatchOnly] {
		if r := &of[rose.BatchOnly][i]; r.Name != rose.None {
			all = append(all, roseHeat(r)...)
		}
	}
	if batch := of[rose.BatchOnly]; len(batch) > 0 {
		all = append(all, roseCourses(batch)...)
		all = append(all, drawn{"fig15a-makespan", spans("Makespan of all runs", batch).Bars},
			drawn{"fig15b-jct", shares("Completion of jobs", "s", batch, func(h *rose.History) []float64 { return h.Completion }).Lines})
	}
	if again := of[rose.Rescheduling]; len(again) > 0 {
		all = append(all, drawn{"fig16-rescheduling", spans("Makespan with and without rescheduling", again).Bars})
	}
	if mixed := of[rose.Beside]; len(mixed) > 0 {
		eps := shares("Throughput of sysbench containers", "alone = 1", mixed, func(h *rose.History) []float64 { return h.EPS })
		all = append(all, drawn{"fig17-ycsb", roseBoxes(mixed).Bars}, drawn{"fig18-sysbench", eps.Lines})
	}
	for _, d := range all {
		if err := cli.Draw(filepath.Join(c.Plot, d.name+".svg"), d.draw); err != nil {
			return err
		}
	}
	return nil
}

// roseHeat is one column of figure 13: each machine over time.
func roseHeat(r *rose.Row) (all []drawn) {
	h := r.History
	for _, what := range []struct {
		file, title string
		high        float64
		values      [][]float64
	}{
		{"spec", "speculative tasks", 8, h.Spec}, {"load", "load average", 24, h.Load}, {"memory", "memory, GB", 14, h.Memory}, {"disk", "disk utilization", 1, h.DiskOf},
	} {
		ch := figure.Chart{Title: r.Name + ": " + what.title, X: "rounds of 10 s", Y: "machine", High: what.high}
		values := what.values
		all = append(all, drawn{"fig13-" + what.file + "-" + r.Name, func(w io.Writer) error { return ch.Heat(w, values) }})
	}
	return all
}

// roseCourses is figure 14.
func roseCourses(rows []rose.Row) []drawn {
	cpu := &figure.Chart{Title: "CPU utilization of the cluster", X: "s", Y: "share", High: 1}
	disk := &figure.Chart{Title: "Disk utilization of the cluster", X: "s", Y: "share", High: 1}
	for i := range rows {
		h := rows[i].History
		at := make([]float64, len(h.CPU))
		for k := range at {
			at[k] = float64(k) * roseRound
		}
		cpu.Series = append(cpu.Series, figure.Series{Name: rows[i].Name, X: at, Y: h.CPU})
		disk.Series = append(disk.Series, figure.Series{Name: rows[i].Name, X: at, Y: h.Disk})
	}
	return []drawn{{"fig14a-cpu", cpu.Lines}, {"fig14b-disk", disk.Lines}}
}

// spans are makespans: the least, the median and the greatest.
func spans(title string, rows []rose.Row) *figure.Chart {
	ch := &figure.Chart{Title: title, Y: "s", Series: []figure.Series{{Name: "least"}, {Name: "median"}, {Name: "greatest"}}}
	for i := range rows {
		ch.Names = append(ch.Names, rows[i].Name)
		for k, q := range []float64{0, 0.5, 1} {
			ch.Series[k].Y = append(ch.Series[k].Y, lab.Quantile(rows[i].Makespans, q))
		}
	}
	return ch
}

// shares are distribution functions of the first runs.
func shares(title, unit string, rows []rose.Row, of func(*rose.History) []float64) *figure.Chart {
	ch := &figure.Chart{Title: title, X: unit, Y: "share of them", High: 1}
	for i := range rows {
		v := slices.Sorted(slices.Values(of(rows[i].History)))
		s := figure.Series{Name: rows[i].Name, X: v}
		for k := range v {
			s.Y = append(s.Y, float64(k+1)/float64(len(v)))
		}
		if len(v) > 0 {
			ch.Series = append(ch.Series, s)
		}
	}
	return ch
}

// roseBoxes is figure 17: the quartiles over containers.
func roseBoxes(rows []rose.Row) *figure.Chart {
	ch := &figure.Chart{Title: "p95 of read latency of MongoDB containers", Y: "alone = 1", Series: []figure.Series{{Name: "25%"}, {Name: "median"}, {Name: "75%"}}}
	for i := range rows {
		if rows[i].LRA == nil {
			continue
		}
		ch.Names = append(ch.Names, rows[i].Name)
		for k := range ch.Series {
			ch.Series[k].Y = append(ch.Series[k].Y, rows[i].LRA.P95[k+1])
		}
	}
	return ch
}
