package main

import (
	"math"
	"slices"
	"time"
)

// window is the period in which the SLO is judged: that of the controller.
const window = 2 * time.Second

// row is what came of one controller in one repetition.
type row struct {
	Policy string `json:"policy"`
	Repeat int    `json:"repeat"`
	// Load is what was answered, and BE what the jobs got done, both as shares: of
	// the most load, and of what the jobs do alone. EMU is their sum.
	Load float64 `json:"load"`
	BE   float64 `json:"be_throughput"`
	EMU  float64 `json:"emu"`
	// Jobs is BE by job.
	Jobs map[string]float64 `json:"be_by_job,omitempty"`
	// P95 and P99 are latencies of all requests, in ms, Worst the p99 of the worst
	// period over the SLO.
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Worst float64 `json:"worst_p99_over_slo"`
	// Held is the share of the 2-s periods in which the SLO held, InTime that of the
	// requests.
	Held   float64 `json:"slo_share"`
	InTime float64 `json:"in_time"`
	// Requests were sent, of which some Failed. Lag is how much later than meant they
	// were sent, at the 99th percentile, in ms.
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Lag      float64 `json:"generator_lag_p99_ms"`
	// Kills of jobs, and the work that they took, as a share of what the jobs do alone.
	Kills int     `json:"kills"`
	Lost  float64 `json:"be_lost"`
	// Cores are what each side used of the CPUs, Others what else did, as a share of
	// the machine.
	Controller float64 `json:"controller_cores"`
	Others     float64 `json:"others_share_of_machine"`
	Stolen     float64 `json:"stolen_share_of_machine"`
	// Verbs counts decisions by kind.
	Verbs map[string]int `json:"decisions,omitempty"`
	Notes []string       `json:"notes,omitempty"`
}

// met says whether the request was answered in time.
func (o *outcome) met(slo time.Duration) bool { return !o.Failed && o.Took <= slo }

// count counts what was meant to be sent from one moment to before another, and what
// of it was in time.
func count(in []outcome, slo, from, to time.Duration) (sent, met int) {
	for k := range in {
		if in[k].Sent && in[k].At >= from && in[k].At < to {
			sent++
			if in[k].met(slo) {
				met++
			}
		}
	}
	return sent, met
}

// held says whether so many in time of so many hold the SLO. A period without a
// request holds it.
func held(sent, met int) bool { return float64(met) >= fraction*float64(sent) }

// quantile returns the latency, in ms, that a share q of the requests was within;
// one that failed took as long as clients wait.
func quantile(in []outcome, q float64) float64 {
	return nearest(in, q, func(o *outcome) time.Duration {
		if o.Failed {
			return patience
		}
		return o.Took
	})
}

// nearest is the quantile of a time by nearest rank, in ms.
func nearest(in []outcome, q float64, of func(*outcome) time.Duration) float64 {
	var all []time.Duration
	for k := range in {
		if in[k].Sent {
			all = append(all, of(&in[k]))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[max(0, int(math.Ceil(q*float64(len(all))))-1)].Microseconds()) / 1000
}

// between returns the outcomes of a period; they are in order of time.
func between(in []outcome, from, to time.Duration) []outcome {
	at := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(in, t, func(o outcome, t time.Duration) int { return int(o.At - t) })
		return i
	}
	return in[at(from):at(to)]
}

// score fills in what the outcomes say.
func (r *row) score(out []outcome, slo time.Duration, most float64, whole time.Duration) {
	r.P95, r.P99 = quantile(out, 0.95), quantile(out, 0.99)
	r.Lag = nearest(out, 0.99, func(o *outcome) time.Duration { return o.Lag })
	periods, good, answered := 0, 0, 0
	for from := time.Duration(0); from+window <= whole; from += window {
		part := between(out, from, from+window)
		sent, met := count(part, slo, from, from+window)
		periods++
		if held(sent, met) {
			good++
		}
		r.Worst = max(r.Worst, quantile(part, 0.99)/(slo.Seconds()*1000))
	}
	for k := range out {
		if out[k].Sent && !out[k].Failed {
			answered++
		}
	}
	sent, met := count(out, slo, 0, whole)
	r.Requests, r.Failed = sent, sent-answered
	r.Held = float64(good) / float64(max(1, periods))
	r.InTime = float64(met) / float64(max(1, sent))
	r.Load = float64(answered) / whole.Seconds() / most
}

// credit fills in what the jobs did, from their work before and after.
func (r *row) credit(jobs []*job, before, after, rates []float64, whole time.Duration) {
	r.Jobs = map[string]float64{}
	for i, j := range jobs {
		done := (after[i] - before[i]) / whole.Seconds() / rates[i]
		r.Jobs[j.Name] = done
		r.BE += done / float64(len(jobs))
		kills, lost := j.toll()
		r.Kills += kills
		r.Lost += lost / whole.Seconds() / rates[i] / float64(len(jobs))
	}
}
