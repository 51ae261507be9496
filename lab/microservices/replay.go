package microservices

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/lab"
)

// Run is one recorded run.
type Run struct {
	Name, File string
	// Speed of its machines, fitted.
	Speed float64
}

// Recorded are the four runs of the paper's figure 12.
func Recorded() []Run {
	return []Run{
		{"Resource-Fair", "hotelres_log_propfair.csv", fairSpeed},
		{"EvoAlg", "hotelres_log_msevoopt.csv", searchSpeed},
		{"epsilon-greedy", "hotelres_log_mssile.csv", searchSpeed},
		{"Cilantro", "hotelres_log_ucbopt.csv", searchSpeed},
	}
}

// Replay compares a recorded run with the network under its allocations.
type Replay struct {
	Run   string  `json:"run"`
	Speed float64 `json:"speed"`
	// Recorded and Played are the mean P99 of the first six hours, in ms.
	Recorded float64 `json:"recorded_p99_ms"`
	Played   float64 `json:"played_p99_ms"`
	Ratio    float64 `json:"ratio"`
	// Correlation is that of the ranks of the windows after the start: 0 if the
	// network says nothing about which windows were slow.
	Correlation float64 `json:"rank_correlation"`
}

// Offered returns the rate that the client of recorded runs offered: what
// windows without overload complete, the 90th percentile of all; OfferedRate
// without logs. Completions of the others are fewer, as they are of what their
// allocation let pass.
func Offered(logs [][]Record) float64 {
	var rates []float64
	for _, log := range logs {
		for i := range log {
			if log[i].Length > 0 {
				rates = append(rates, log[i].Completed/log[i].Length)
			}
		}
	}
	if len(rates) == 0 {
		return OfferedRate
	}
	return lab.Quantile(rates, 0.9)
}

const playedSeconds = 6 * 3600

// Play drives the network with the allocations of a log at the offered rate,
// without drift and noise.
func (r Run) Play(log []Record) Replay { return r.with(services(), log) }

// with plays the log with other works.
func (r Run) with(works []Service, log []Record) Replay {
	n := New(works, classes())
	var saw, played, a, b []float64
	for i := range log {
		if log[i].Start >= playedSeconds {
			break
		}
		w := n.Play(log[i].CPUs[:], OfferedRate, r.Speed*warmth(log[i].Start))
		saw, played = append(saw, log[i].P99), append(played, w.P99)
		if log[i].Start >= coldSeconds {
			a, b = append(a, log[i].P99), append(b, w.P99)
		}
	}
	out := Replay{Run: r.Name, Speed: r.Speed, Recorded: lab.Mean(saw), Played: lab.Mean(played), Correlation: correlation(ranks(a), ranks(b))}
	if out.Recorded > 0 {
		out.Ratio = out.Played / out.Recorded
	}
	return out
}

// ranks returns the place of each value among all, the mean one for equals.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case v[i] < v[j]:
			return -1
		case v[i] > v[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}

// correlation is Pearson's; 0 where one is constant.
func correlation(a, b []float64) float64 {
	ma, mb := lab.Mean(a), lab.Mean(b)
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
