package main

import "time"

// figures are what one service had and took in a row.
type figures struct {
	// Given is the mean of the limit, or without one of the usage, in bytes; Working is the mean of the
	// working set and Peak its highest reading.
	Given, Working, Peak float64
	// InTime is the share of requests that were answered within the SLO, P99 the latency of those that
	// were answered, in seconds.
	InTime, P99 float64
	// Kills, Met and Refaults are those of the row: of the kernel's OOM killer, of the limit, of pages.
	Kills, Met, Refaults float64
}

// score judges a run of one service.
func score(s seen, within time.Duration) (f figures) {
	var took []float64
	for _, o := range s.Outcomes {
		if o.OK {
			took = append(took, o.Took.Seconds())
		}
		if o.OK && o.Took <= within {
			f.InTime += 1 / float64(len(s.Outcomes))
		}
	}
	f.P99 = quantile(took, 0.99)
	n := float64(len(s.Readings))
	for _, r := range s.Readings {
		if r.Limit > 0 {
			f.Given += r.Limit / n
		} else {
			f.Given += r.Usage / n
		}
		f.Working += r.Working / n
		f.Peak = max(f.Peak, r.Working)
	}
	if len(s.Readings) > 0 {
		first, last := s.Readings[0], s.Readings[len(s.Readings)-1]
		f.Kills, f.Met, f.Refaults = last.Kills-first.Kills, last.Met-first.Met, last.Refaults-first.Refaults
	}
	return f
}

// row is what all services had under one way to set limits.
type row struct {
	Name     string
	Services []figures
	seen     []seen
}

// sum returns the figures of all services together: sums, and the least share in time and highest p99.
func (r *row) sum() (all figures) {
	all.InTime = 1
	for _, f := range r.Services {
		all.Given += f.Given
		all.Working += f.Working
		all.Peak += f.Peak
		all.Kills += f.Kills
		all.Met += f.Met
		all.Refaults += f.Refaults
		all.InTime = min(all.InTime, f.InTime)
		all.P99 = max(all.P99, f.P99)
	}
	return all
}
