package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trimtab/trimtab/sim/figure"
)

// plot draws the scenario: for each policy the quotas beside what the load
// needs, and the share in time per window; and that of all policies together.
func (r *result) plot(dir string, t *trial) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("draw %s: %w", r.Scenario, err)
	}
	all := figure.Chart{Title: r.Scenario + ": requests in time, all services", X: "s", Y: "share in time", High: 1}
	for _, row := range r.Rows {
		quotas := figure.Chart{Title: fmt.Sprintf("%s, %s: quotas and needs", r.Scenario, row.Policy), X: "s", Y: "cores"}
		in := figure.Chart{Title: fmt.Sprintf("%s, %s: requests in time", r.Scenario, row.Policy), X: "s", Y: "share in time", High: 1}
		for i, s := range t.services {
			quotas.Series = append(quotas.Series, row.quota(i, s.Name))
		}
		for i, s := range t.services {
			quotas.Series = append(quotas.Series, t.need(i, s.Name))
			in.Series = append(in.Series, row.course(t, s.Name, i))
		}
		all.Series = append(all.Series, row.course(t, row.Policy, 0, 1, 2))
		name := r.Scenario + "-" + strings.ReplaceAll(row.Policy, ":", "-")
		for suffix, chart := range map[string]*figure.Chart{"-quotas.svg": &quotas, "-in-time.svg": &in} {
			if err := draw(filepath.Join(dir, name+suffix), chart); err != nil {
				return err
			}
		}
	}
	return draw(filepath.Join(dir, r.Scenario+".svg"), &all)
}

func draw(name string, c *figure.Chart) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	defer f.Close()
	return c.Lines(f)
}

// quota is the quota of service i over time.
func (r *row) quota(i int, name string) figure.Series {
	out := figure.Series{Name: name + " quota"}
	for _, s := range r.seen.watched.Samples {
		out.X, out.Y = append(out.X, s.At.Seconds()), append(out.Y, s.Cores[i])
	}
	return out
}

// need is the CPU that the arrivals of service i ask for, by window.
func (t *trial) need(i int, name string) figure.Series {
	out := figure.Series{Name: name + " need"}
	for from := time.Duration(0); from < t.whole; from += fineWindow {
		v := work(t.arrivals[i], from, from+fineWindow) * t.services[i].Cost.Seconds() / fineWindow.Seconds()
		out.X, out.Y = append(out.X, (from+fineWindow/2).Seconds()), append(out.Y, v)
	}
	return out
}

// course is the share in time of some services by window.
func (r *row) course(t *trial, name string, services ...int) figure.Series {
	out := figure.Series{Name: name}
	for from := time.Duration(0); from < t.whole; from += fineWindow {
		sent, met := 0, 0
		for _, i := range services {
			a, b := count(r.seen.outcomes[i], t.services[i].SLO, from, from+fineWindow)
			sent, met = sent+a, met+b
		}
		if sent > 0 {
			out.X, out.Y = append(out.X, (from+fineWindow/2).Seconds()), append(out.Y, share(met, sent))
		}
	}
	return out
}
