package main

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// Lengths of the windows in which an SLO is judged: the fine one for courses
// and for how soon a service is back, the other for minutes missed.
const (
	fineWindow   = 5 * time.Second
	missedWindow = 10 * time.Second
	// backFor is how many fine windows in a row must meet the SLO.
	backFor = 3
	// settled is after how much time moves under constant load count.
	settled = 3 * time.Minute
)

// row is what one policy did in one scenario.
type row struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	// InTime is the share of requests in time, over all, by service, and over
	// all by thirds of the run.
	InTime   float64    `json:"in_time"`
	Services [3]figures `json:"services"`
	Thirds   [3]float64 `json:"in_time_by_thirds"`
	// Requests were sent, Failed of them got no answer within 10 s or a wrong
	// one.
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	// CoreHours is the CPU time of the services.
	CoreHours float64 `json:"core_hours"`
	// Missed is the time in which a service missed its SLO, in minutes, summed
	// over the services.
	Missed float64 `json:"minutes_missed"`
	Moves  int     `json:"moves"`
	// Highest is the largest sum of quotas seen, in cores.
	Highest float64 `json:"highest_sum_cores"`
	// Better is the time after which there were always fewer misses in total
	// than under equal shares, in seconds; nil: not before the end, or unknown.
	Better *float64 `json:"better_than_equal_after_s"`
	// Back are the seconds from each sudden rise until the service was back in
	// time; null: not before the next event or the end.
	Back []*float64 `json:"back_in_time_s,omitempty"`
	// Welfare is what the run is worth by each objective, Recovered the seconds from the end of
	// each overload until 99% of the requests of all services were in time; null: not before the
	// next one or the end.
	Welfare   services.Welfare `json:"welfare"`
	Recovered []*float64       `json:"in_time_after_overload_s,omitempty"`
	// Constant is set under constant load only.
	Constant *constant `json:"constant_load,omitempty"`
	// Others is what others used of the machine meanwhile, Stolen what of it the
	// hypervisor gave to other machines: that no weight holds off. OwnCores is what
	// trimtab used, with Prometheus and Alertmanager where they ran.
	Others   float64 `json:"others_share_of_machine"`
	Stolen   float64 `json:"stolen_share_of_machine"`
	OwnCores float64 `json:"trimtab_cores"`
	// Cost is the CPU time of a request in this run over the calibrated one:
	// above 1, the load was higher than planned.
	Cost float64 `json:"cost_over_calibrated"`
	// Unsafe says what must never be. Notes are for people, Warnings are
	// trimtab's own, Log is where they stand.
	Unsafe   []string `json:"unsafe,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Log      string   `json:"log,omitempty"`

	seen recorded
}

// recorded is what became of each request, by service, and what was seen of the host meanwhile.
type recorded struct {
	outcomes [3][]outcome
	watched  watched
}

// constant is what a constant load shows, after the first 3 minutes.
type constant struct {
	// Moves are moves of a workload in 10 minutes, Broken the windows in which a service missed an
	// SLO that it met under equal shares; null: these were not played.
	Moves  float64 `json:"moves_per_workload_10min"`
	Broken *int    `json:"windows_broken"`
}

// figures are those of one service.
type figures struct {
	Name     string  `json:"name"`
	InTime   float64 `json:"in_time"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
	Requests int     `json:"requests"`
	Missed   float64 `json:"minutes_missed"`
}

// met says whether the request was in time.
func (o *outcome) met(s slo) bool { return !o.Failed && o.Took <= s.Latency }

// count counts what was sent, and what of it was in time, from one moment of
// the run to before another.
func count(in []outcome, s slo, from, to time.Duration) (sent, met int) {
	for k := range in {
		if in[k].Sent && in[k].At >= from && in[k].At < to {
			sent++
			if in[k].met(s) {
				met++
			}
		}
	}
	return sent, met
}

// share is part / whole, and NaN for nothing.
func share(part, whole int) float64 { return float64(part) / float64(whole) }

// windows tells for each window of the run whether it met the SLO. One without
// a request did.
func windows(in []outcome, s slo, width, whole time.Duration) []bool {
	var out []bool
	for from := time.Duration(0); from < whole; from += width {
		sent, met := count(in, s, from, from+width)
		out = append(out, float64(met) >= s.Fraction*float64(sent))
	}
	return out
}

// quantile returns the latency, in ms, that a share q of the requests was
// below; one that failed took as long as clients wait.
func quantile(in []outcome, q float64) float64 {
	var all []time.Duration
	for k := range in {
		switch {
		case !in[k].Sent:
		case in[k].Failed:
			all = append(all, patience)
		default:
			all = append(all, in[k].Took)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	at := int(math.Ceil(q*float64(len(all)))) - 1
	return float64(all[max(0, at)].Microseconds()) / 1000
}

// score fills the row from outcomes and samples. base is the row of equal
// shares, or nil.
func (r *row) score(t *trial, base *row) {
	sum := 0
	var thirds [3][2]int
	for i, s := range t.services {
		in := r.seen.outcomes[i]
		sent, met := count(in, s.SLO, 0, t.whole)
		missed := 0
		for _, ok := range windows(in, s.SLO, missedWindow, t.whole) {
			if !ok {
				missed++
			}
		}
		f := figures{Name: s.Name, InTime: ratio(share(met, sent)), P95: quantile(in, .95), P99: quantile(in, .99), Requests: sent, Missed: float64(missed) * missedWindow.Minutes()}
		r.Services[i] = f
		r.Requests += sent
		r.Missed += f.Missed
		sum += met
		for k := range in {
			if in[k].Sent && in[k].Failed {
				r.Failed++
			}
		}
		for k := range thirds {
			sent, met := count(in, s.SLO, t.whole*time.Duration(k)/3, t.whole*time.Duration(k+1)/3)
			thirds[k][0] += sent
			thirds[k][1] += met
		}
	}
	r.InTime = ratio(share(sum, r.Requests))
	for k, v := range thirds {
		r.Thirds[k] = ratio(share(v[1], v[0]))
	}
	moves := r.seen.watched.moves(0)
	r.Moves, r.Highest = moves[0]+moves[1]+moves[2], r.seen.watched.Highest
	for _, e := range t.scenario.Events(t.whole) {
		r.Back = append(r.Back, back(r.seen.outcomes[e.Service], t.services[e.Service].SLO, e, t))
	}
	r.Welfare = r.worth(t)
	if a := r.admission(t); a != nil {
		r.Notes = append(r.Notes, a.text(t.names()))
	}
	r.recover(t)
	r.compare(t, base)
}

// ratio makes NaN, which JSON cannot carry, 0.
func ratio(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// back returns the seconds from the event to the first of several windows in a
// row that meet the SLO, before the service's next event.
func back(in []outcome, s slo, e shape.Event, t *trial) *float64 {
	end := t.whole
	for _, other := range t.scenario.Events(t.whole) {
		if other.Service == e.Service && other.At > e.At {
			end = min(end, other.At)
		}
	}
	good := 0
	for from := e.At; from+fineWindow <= end; from += fineWindow {
		sent, met := count(in, s, from, from+fineWindow)
		if float64(met) < s.Fraction*float64(sent) {
			good = 0
			continue
		}
		if good++; good == backFor {
			v := (from - (backFor-1)*fineWindow - e.At).Seconds()
			return &v
		}
	}
	return nil
}

// compare fills what needs the row of equal shares.
func (r *row) compare(t *trial, base *row) {
	if r.Scenario == "noise" {
		from := min(settled, t.whole/2)
		m := r.seen.watched.moves(from)
		r.Constant = &constant{Moves: float64(m[0]+m[1]+m[2]) / 3 / (t.whole - from).Minutes() * 10}
	}
	if base == nil || base == r {
		return
	}
	r.Better = better(misses(t, r), misses(t, base))
	if r.Constant == nil {
		return
	}
	broken := 0
	for i, s := range t.services {
		mine, theirs := windows(r.seen.outcomes[i], s.SLO, missedWindow, t.whole), windows(base.seen.outcomes[i], s.SLO, missedWindow, t.whole)
		for k := range mine {
			if theirs[k] && !mine[k] {
				broken++
			}
		}
	}
	r.Constant.Broken = &broken
}

// misses returns how many requests of all services were late up to the end of
// each second.
func misses(t *trial, r *row) []int {
	out := make([]int, int(math.Ceil(t.whole.Seconds())))
	for i, s := range t.services {
		for k := range r.seen.outcomes[i] {
			if o := &r.seen.outcomes[i][k]; o.Sent && !o.met(s.SLO) {
				out[min(len(out)-1, int(o.At/time.Second))]++
			}
		}
	}
	for k := 1; k < len(out); k++ {
		out[k] += out[k-1]
	}
	return out
}

// better returns the seconds after which mine stays below theirs, or nil. Both
// are cumulative, by second.
func better(mine, theirs []int) *float64 {
	at := len(mine)
	for at > 0 && mine[at-1] < theirs[at-1] {
		at--
	}
	if at == len(mine) {
		return nil
	}
	v := float64(at)
	return &v
}
