package autoscale

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

// The types of a target.
const (
	// Utilization is a target in percent of the request. AverageValue is an amount per pod,
	// compared with a value of each pod. External is an amount per pod, compared with one sum.
	// Value is a target for the sum itself.
	Utilization  = "Utilization"
	AverageValue = "AverageValue"
	External     = "External"
	Value        = "Value"
)

// Pod is one pod as the controller sees it.
type Pod struct {
	// Pending says that it has not started.
	Pending, Ready bool
	// Age is the time since its start; Held is the time since it became ready, or stopped being
	// ready.
	Age, Held time.Duration
	// Usage is the usage of CPU or the value of the metric; nil: it could not be read.
	Usage *float64
}

// Metric is one metric of an HPA, with its values.
type Metric struct {
	Type   string
	Target float64
	// Usage has the value of each pod that counts, and its request (for Utilization).
	Usage   []float64
	Request float64
	// Unready counts pods that are not ready, Missing other pods without a value.
	Unready, Missing int
	// Ready counts the ready pods, for the type Value.
	Ready int
	// Sum is the value for External and Value; nil: it could not be read.
	Sum *float64
}

// The controller's own constants. For CPU a young pod counts as unready until it has been ready for
// a whole metrics window; a pod that was never ready always counts as unready.
const (
	young, window, firstReadiness = 5 * time.Minute, 30 * time.Second, 30 * time.Second
)

// See sorts the pods into those that count, those that do not count yet, and those without a value.
func (m *Metric) See(pods []Pod, cpu bool) {
	m.Usage, m.Unready, m.Missing, m.Ready = nil, 0, 0, 0
	for i := range pods {
		p := &pods[i]
		if p.Ready && !p.Pending {
			m.Ready++
		}
		switch {
		case p.Pending:
			m.Unready++
		case p.Usage == nil:
			m.Missing++
		case cpu && p.unready():
			m.Unready++
		default:
			m.Usage = append(m.Usage, *p.Usage)
		}
	}
}

func (p *Pod) unready() bool {
	if p.Age < young {
		return !p.Ready || p.Held < window
	}
	return !p.Ready && p.Age-p.Held < firstReadiness
}

// HPA is one HorizontalPodAutoscaler with its controller's state.
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

// Step returns the number of replicas to set now: every 15 s, else the current one. It assumes that
// the caller applies it.
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
	h.State.See(now, current)
	wanted, ok := behavior.Combine(current, readings)
	in := behavior.Bounds{Min: h.Min, Max: h.Max}
	if !ok && current >= h.Min && current <= h.Max {
		return current
	}
	to := h.State.Step(now, h.Behavior, in, current, wanted).Replicas
	h.State.Changed(now, h.Behavior, current, to)
	return to
}

// replicas returns the number that the metric recommends.
func (m *Metric) replicas(current int, t behavior.Tolerance) (int, bool) {
	if !(m.Target > 0) {
		return 0, false
	}
	switch m.Type {
	case External, Value:
		if m.Sum == nil || !(*m.Sum >= 0 && *m.Sum <= math.MaxFloat64) {
			return 0, false
		}
		sum, target := float64(milli(*m.Sum)), float64(milli(m.Target))
		switch {
		case m.Type == External && t.Holds(sum/(target*float64(current))), m.Type == Value && current > 0 && t.Holds(sum/target):
			return current, true
		case m.Type == Value && current > 0:
			return count(math.Ceil(sum / target * float64(m.Ready))), true
		}
		return count(math.Ceil(sum / target)), true
	}
	return m.pods(current, t)
}

// milli converts an amount to thousandths, rounded up as the controller does. A fraction below a
// millionth of that is a rounding error.
func milli(v float64) int64 {
	return int64(math.Min(math.Ceil(math.Round(v*1e9)/1e6), 1e18))
}

// pods recommends a number from the values of pods. A pod without a value makes the change smaller:
// for a reduction it counts as at the target (for a utilisation as using its whole request, if that
// is more), for an increase as 0. Unready pods count as 0 for an increase.
func (m *Metric) pods(current int, t behavior.Tolerance) (int, bool) {
	n := int64(len(m.Usage))
	if n == 0 || m.Type == Utilization && milli(m.Request) == 0 {
		return 0, false
	}
	sum := int64(0)
	for _, u := range m.Usage {
		if !(u >= 0 && u <= 1e12) {
			return 0, false
		}
		sum += milli(u)
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
		sum += int64(m.Missing) * m.stand()
	}
	if ratio != 1 {
		n += int64(m.Missing)
	}
	if unready {
		n += int64(m.Unready)
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

// ratio returns usage / target: a utilisation in whole percent, a mean in thousandths, both
// truncated.
func (m *Metric) ratio(sum, n int64) float64 {
	if m.Type == Utilization {
		return float64(sum*100/(milli(m.Request)*n)) / m.Target
	}
	return float64(sum/n) / float64(milli(m.Target))
}

// stand returns the value to assume for a pod without one when the number is to be lowered.
func (m *Metric) stand() int64 {
	if m.Type == Utilization {
		return milli(m.Request) * int64(math.Max(100, m.Target)) / 100
	}
	return milli(m.Target)
}

func count(v float64) int { return int(math.Min(math.Max(v, 0), math.MaxInt32)) }
