package main

import (
	"math"
	"slices"
	"time"
)

// settled is how long after the end of a step nobody should be refused any more.
const settled = 5 * time.Second

// figures are what clients saw of a run. Shares are of requests that were meant to be sent in
// the step.
type figures struct {
	// Goodput is what was answered within the SLO in the step, over what the capacity allows.
	Goodput float64 `json:"goodput"`
	// prompt is the share of the answers in the step that were within the SLO; nil: there was none, or
	// clients gave up, and nobody counted the answers that were too late for them.
	prompt *float64
	// P50 and P99 are of what was answered in the step; null: nothing was.
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
	// Shed is the share whose last try was refused, GaveUp that of clients that gave up, Failed
	// of other answers.
	Shed   float64 `json:"shed"`
	GaveUp float64 `json:"gave_up"`
	Failed float64 `json:"failed"`
	// First is the time from the begin of the step to the first refusal in it; null: there is none.
	First *float64 `json:"first_shed_ms"`
	// Late is how many requests were refused that were sent 5 s or more after the step.
	Late int `json:"shed_after_5s"`
	// Critical, Normal and Low are the shares of each class in time; null: none was sent.
	Critical *float64 `json:"critical_in_time"`
	Normal   *float64 `json:"normal_in_time"`
	Low      *float64 `json:"low_in_time"`
	// Tries were sent in all, Behind is by how much the 99th percentile was sent too late.
	Tries  int     `json:"tries"`
	Behind float64 `json:"behind_p99_ms"`
}

// score judges the outcomes of a run.
func score(out []outcome, c course, within time.Duration, capacity float64) figures {
	var f figures
	var took, behind []float64
	sent, met := map[string]int{}, map[string]int{}
	all, good := 0, 0
	first := time.Duration(math.MaxInt64)
	for _, o := range out {
		f.Tries += o.Tries
		behind = append(behind, o.Behind.Seconds()*1000)
		if o.Shed > 0 && o.At >= c.end()+settled {
			f.Late++
		}
		if o.Shed > 0 && o.ShedAt >= c.Before && o.ShedAt < c.end() {
			first = min(first, o.ShedAt)
		}
		if o.At < c.Before || o.At >= c.end() {
			continue
		}
		all++
		sent[o.Class]++
		switch o.End {
		case answered:
			took = append(took, o.Took.Seconds()*1000)
			if o.Took <= within {
				good++
				met[o.Class]++
			}
		case shed:
			f.Shed++
		case gaveUp:
			f.GaveUp++
		default:
			f.Failed++
		}
	}
	f.Goodput = float64(good) / (c.Step.Seconds() * capacity)
	if len(took) > 0 && f.GaveUp == 0 {
		share := float64(good) / float64(len(took))
		f.prompt = &share
	}
	if all > 0 {
		f.Shed, f.GaveUp, f.Failed = f.Shed/float64(all), f.GaveUp/float64(all), f.Failed/float64(all)
	}
	if first != math.MaxInt64 {
		ms := (first - c.Before).Seconds() * 1000
		f.First = &ms
	}
	f.P50, f.P99 = quantile(took, 0.5), quantile(took, 0.99)
	f.Critical, f.Normal, f.Low = part(met, sent, critical), part(met, sent, normal), part(met, sent, low)
	if v := quantile(behind, 0.99); v != nil {
		f.Behind = *v
	}
	return f
}

// quantile is the value that a share q of them do not exceed; nil: there is none.
func quantile(in []float64, q float64) *float64 {
	if len(in) == 0 {
		return nil
	}
	slices.Sort(in)
	return &in[max(0, int(math.Ceil(q*float64(len(in))))-1)]
}

// part is the share of a class that was in time; nil: none was sent.
func part(met, sent map[string]int, class string) *float64 {
	if sent[class] == 0 {
		return nil
	}
	v := float64(met[class]) / float64(sent[class])
	return &v
}

// share is the share of the requests that were answered within the SLO.
func share(out []outcome, within time.Duration) float64 {
	met := 0
	for _, o := range out {
		if o.End == answered && o.Took <= within {
			met++
		}
	}
	return float64(met) / float64(max(1, len(out)))
}
