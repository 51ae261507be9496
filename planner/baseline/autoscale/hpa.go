package autoscale

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

// The types of a target.
const (
	// Utilization is percent of requests, AverageValue an amount per pod of which the
	// pods' own values are known, External one of a sum, Value of the ratio alone.
	Utilization  = "Utilization"
	AverageValue = "AverageValue"
	External     = "External"
	Value        = "Value"
)

// Metric is one metric of an HPA, with what was read of it.
type Metric struct {
	Type   string
	Target float64
	// Usage of each ready pod, and its request (of Utilization).
	Usage   []float64
	Request float64
	// Unready pods, and ready ones of which nothing was read.
	Unready, Missing int
	// Sum is the value of External and Value; nil: it could not be read.
	Sum *float64
}

// HPA is one HorizontalPodAutoscaler with what its controller remembers.
type HPA struct {
	Min, Max int
	Behavior *behavior.Behavior
	State    behavior.State
	looked   time.Time
}

// Validate returns an error that is trimtab.ErrInvalid.
func (h *HPA) Validate() error {
	if h.Min < 0 || h.Max < max(h.Min, 1) || h.Max > math.MaxInt32 {
		return trimtab.Invalidf("minReplicas %d, maxReplicas %d: want 0 <= min <= max", h.Min, h.Max)
	}
	return h.Behavior.Validate()
}

// Step returns the number to set now, which is taken to be set: every 15 s, else the
// current one.
func (h *HPA) Step(now time.Time, current int, metrics []Metric) int {
	if !behavior.Due(now, h.looked, false) {
		return current
	}
	h.looked = now
	readings := make([]behavior.Reading, len(metrics))
	for i := range metrics {
		n, ok := metrics[i].replicas(current, h.Behavior.Tolerance())
		readings[i] = behavior.Reading{Replicas: n, Missing: !ok}
	}
	wanted, ok := behavior.Combine(current, readings)
	in := behavior.Bounds{Min: h.Min, Max: h.Max}
	if !ok && current >= h.Min && current <= h.Max {
		return current
	}
	to := h.State.Step(now, h.Behavior, in, current, wanted).Replicas
	h.State.Changed(now, h.Behavior, current, to)
	return to
}

// replicas is what the metric recommends.
func (m *Metric) replicas(current int, t behavior.Tolerance) (int, bool) {
	if !(m.Target > 0) {
		return 0, false
	}
	switch m.Type {
	case External, Value:
		if m.Sum == nil || !(*m.Sum >= 0 && *m.Sum <= math.MaxFloat64) {
			return 0, false
		}
		ratio := *m.Sum / m.Target
		if m.Type == Value {
			if t.Holds(ratio) {
				return current, true
			}
			return count(math.Ceil(ratio * float64(len(m.Usage)))), true
		}
		if current > 0 && t.Holds(ratio/float64(current)) {
			return current, true
		}
		return count(math.Ceil(ratio)), true
	}
	return m.pods(current, t)
}

// pods recommends from the values of pods. Pods of which nothing is known count as if
// they made a change smaller: at the target (or, of a utilisation, at the whole of their
// request where that is more) for a fall, at 0 for a rise; unready ones at 0 for a rise.
func (m *Metric) pods(current int, t behavior.Tolerance) (int, bool) {
	n := len(m.Usage)
	if n == 0 || m.Type == Utilization && !(m.Request > 0) {
		return 0, false
	}
	sum := 0.0
	for _, u := range m.Usage {
		sum += u
	}
	if !(sum >= 0 && sum <= math.MaxFloat64) {
		return 0, false
	}
	ratio := m.ratio(sum, n)
	unready := m.Unready > 0 && ratio > 1
	if !unready && m.Missing == 0 {
		if t.Holds(ratio) {
			return current, true
		}
		return count(math.Ceil(ratio * float64(n))), true
	}
	if ratio < 1 {
		sum += float64(m.Missing) * m.stand()
	}
	n += m.Missing
	if unready {
		n += m.Unready
	}
	again := m.ratio(sum, n)
	if t.Holds(again) || ratio < 1 && again > 1 || ratio > 1 && again < 1 {
		return current, true
	}
	to := count(math.Ceil(again * float64(n)))
	if again < 1 && to > current || again > 1 && to < current {
		return current, true
	}
	return to, true
}

// ratio of usage to target: a utilisation is a whole number of percent, cut off.
func (m *Metric) ratio(sum float64, n int) float64 {
	if m.Type == Utilization {
		return math.Trunc(sum*100/(m.Request*float64(n))) / m.Target
	}
	return sum / float64(n) / m.Target
}

// stand is what a pod counts in a fall of which nothing is known.
func (m *Metric) stand() float64 {
	if m.Type == Utilization {
		return m.Request * math.Max(100, m.Target) / 100
	}
	return m.Target
}

func count(v float64) int { return int(math.Min(math.Max(v, 0), math.MaxInt32)) }
