package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

// table prints as it goes: a row for each promise, and on a terminal the test
// that runs.
type table struct {
	w        io.Writer
	terminal bool
	// told is when progress was last printed where there is no terminal.
	told time.Time
}

func newTable(f *os.File) *table {
	info, err := f.Stat()
	return &table{w: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, told: time.Now()}
}

func (o *table) head(promises []promise, opt *options) {
	var sum time.Duration
	for _, p := range promises {
		sum += p.estimate(opt.scale)
	}
	fmt.Fprintf(o.w, "%d promises, scale %v, seed %d, about %s on two busy cores\n\n", len(promises), opt.scale, opt.seed, round(sum))
	if !opt.list {
		return
	}
	for _, p := range promises {
		fmt.Fprintf(o.w, "%-4s %-8s %s\n", p.id, round(p.estimate(opt.scale)), p.sentence)
		for _, t := range p.tests {
			cases := ""
			if n := t.size(opt.scale); n > 0 {
				cases = fmt.Sprint(n)
			}
			fmt.Fprintf(o.w, "     %8s %s.%s\n", cases, t.pkg, t.name)
		}
		for _, s := range p.not {
			fmt.Fprintf(o.w, "     not tried: %s\n", s)
		}
	}
}

func (o *table) columns() {
	fmt.Fprintf(o.w, "%-7s %9s %9s %9s %9s %8s  %s\n", "promise", "cases", "failures", "p99", "promised", "time", "what")
}

// round is a duration as people say it.
func round(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}

// progress prints what the running test has tried so far: on a terminal at
// once, elsewhere once a minute.
func (o *table) progress(p promise, t test, reports []trial.Report, planned int, since time.Duration) {
	if !o.terminal && time.Since(o.told) < time.Minute {
		return
	}
	o.told = time.Now()
	cases, failures := 0, 0
	for _, r := range reports {
		cases += r.Cases
		failures += r.Failures
	}
	line := fmt.Sprintf("%-7s %s, %s", p.id, t.name, round(since.Round(time.Second)))
	if planned > 0 {
		line += fmt.Sprintf(", %d of %d cases, %d failures", cases, planned, failures)
	}
	if o.terminal {
		fmt.Fprintf(o.w, "\r\x1b[K%.120s", line)
	} else {
		fmt.Fprintln(o.w, "  ...", line)
	}
}

// row prints what came of a promise. Without a single case it is not tried,
// and nothing else is said of it.
func (o *table) row(p promise, r result) {
	if o.terminal {
		fmt.Fprint(o.w, "\r\x1b[K")
	}
	cases, failures, p99, promised := fmt.Sprint(r.cases), fmt.Sprint(r.failures), "", ""
	if r.cases == 0 {
		cases, failures = "not tried", "-"
	}
	if r.cases == 0 && r.failures > 0 {
		failures = fmt.Sprint(r.failures)
	}
	if len(r.took) > 0 {
		p99 = fmt.Sprintf("%.3g s", trial.Quantile(r.took, 0.99))
	}
	if p.p99 > 0 {
		promised = p.p99.String()
		if len(r.took) > 0 && trial.Quantile(r.took, 0.99) > p.p99.Seconds() {
			promised = "LATE " + promised
		}
	}
	fmt.Fprintf(o.w, "%-7s %9s %9s %9s %9s %8s  %s\n", p.id, cases, failures, p99, promised, round(r.time), p.sentence)
	for _, s := range r.notes {
		fmt.Fprintf(o.w, "        %s\n", s)
	}
	for _, s := range r.not {
		fmt.Fprintf(o.w, "        not tried: %s\n", s)
	}
	for _, s := range r.logs {
		fmt.Fprintf(o.w, "        failed: see %s\n", s)
	}
}

func (o *table) foot(failures int, opt *options) {
	fmt.Fprintf(o.w, "\n%d failures; seed %d; what the tests printed is in %s\n", failures, opt.seed, opt.logs)
}
