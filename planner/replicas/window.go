package replicas

import "math"

// judged is over how many reports an SLO is judged: a minute of those of 15 s.
const judged = 4

// Window is what was in time of the last reports: what was missed in the window over which
// an SLO is judged can be made good in its rest.
type Window struct {
	Requests [judged - 1]float64 `json:"requests"`
	InTime   [judged - 1]float64 `json:"in_time"`
}

// Observe takes in a report.
func (w *Window) Observe(requests, inTime float64) {
	copy(w.Requests[:], w.Requests[1:])
	copy(w.InTime[:], w.InTime[1:])
	w.Requests[judged-2], w.InTime[judged-2] = requests, inTime
}

// Aim is the share of requests in time that the next report needs for the window to meet
// the SLO, at least the SLO, and at most with a quarter of the late ones that it allows.
func (w *Window) Aim(slo, next float64) float64 {
	aim := slo
	short, requests := 0.0, 0.0
	for i := range w.Requests {
		k := len(w.Requests) - 1 - i
		short += slo*w.Requests[k] - w.InTime[k]
		requests += w.Requests[k]
		if next > 0 {
			aim = math.Max(aim, slo+short/next)
		}
	}
	return math.Min(aim, 1-(1-slo)/4)
}
