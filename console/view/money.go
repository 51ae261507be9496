package view

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// Money is what the pods of a workload take of the cluster's CPU, in cores, now.
type Money struct {
	// Reserved is the sum of the requests of its Pods, which the scheduler keeps free for them.
	Reserved float64 `json:"reserved"`
	Pods     int     `json:"pods"`
	// Used is what was measured last, and Needed the least that meets the SLO at the upper bound of the
	// load to come, by the lower bound of the curve; nil: unknown.
	Used   *float64 `json:"used,omitempty"`
	Needed *float64 `json:"needed,omitempty"`
}

// money returns what the workload takes of a pool of CPU; nil: a request of one of its pods is unknown,
// or it has no pods.
func (s *state) money(resource string, now time.Time) *Money {
	if resource != trimtab.CPU {
		return nil
	}
	var m Money
	for h, k := range s.knobs(resource) {
		switch {
		case h.Gone(now):
			continue
		case k.Status == nil || k.Status.Reserved == nil:
			return nil
		}
		m.Reserved, m.Pods = m.Reserved+*k.Status.Reserved, m.Pods+1
	}
	if m.Pods == 0 {
		return nil
	}
	e := s.estimate.Value
	if e == nil || e.Hold != nil { // what it says is not of now
		return &m
	}
	if in := input(e.Inputs, string(quantity.Usage)); in != nil {
		m.Used = &in.Value
	}
	if e.Curve != nil && e.Load != nil && s.Target > 0 {
		scale, _ := e.Curve.Scale(e.Load.Upper)
		if need := e.Curve.Least(scale, s.Target, func(b trimtab.Band) float64 { return b.Lower }); need >= 0 {
			m.Needed = &need
		}
	}
	return &m
}

// money lists, for each workload of which requests are known, what its pods reserve, use and need.
func (r *Report) money() (s Section, ok bool) {
	s = Section{Title: "Requests: cores reserved, used, needed", Head: []string{"Workload", "Pods", "Reserved", "Used", "Needed"}}
	var all Money
	var used, needed float64
	known, listed := 0, 0
	for i := range r.Workloads {
		m := r.Workloads[i].Money
		if m == nil {
			continue
		}
		listed++
		row := []string{r.Workloads[i].Workload, fmt.Sprint(m.Pods), Number(m.Reserved), Missing, Missing}
		for k, v := range []*float64{m.Used, m.Needed} {
			if v != nil {
				row[3+k] = Number(*v)
			}
		}
		s.Rows = append(s.Rows, row)
		if m.Used != nil && m.Needed != nil {
			known++
			all.Reserved, all.Pods, used, needed = all.Reserved+m.Reserved, all.Pods+m.Pods, used+*m.Used, needed+*m.Needed
		}
	}
	text := "Now, in cores. Reserved is the sum of the requests of pods, which the scheduler keeps free for them; needed is the least that meets the SLO at the upper bound of the load to come."
	if known < listed {
		text += fmt.Sprintf(" The last line is of the %d of %d of which all three are known.", known, listed)
	}
	s.Text = []string{text}
	if known > 0 {
		s.Rows = append(s.Rows, []string{"all", fmt.Sprint(all.Pods), Number(all.Reserved), Number(used), Number(needed)})
	}
	return s, listed > 0
}
