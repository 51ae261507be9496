package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// holderOf is what makes a knob read-only, "HPA shop/web", with which
// [trimtab.KnobState.ReadOnly] begins then; "": no program that turns it does.
func holderOf(readOnly string) string {
	name, _, ok := strings.Cut(readOnly, " sets its ")
	if !ok {
		if name, _, ok = strings.Cut(readOnly, " follows the utilisation "); !ok {
			return ""
		}
	}
	for kind, short := range map[string]string{"HorizontalPodAutoscaler": "HPA", "ScaledObject": "KEDA ScaledObject", "VerticalPodAutoscaler": "VPA"} {
		if rest, ok := strings.CutPrefix(name, kind+" "); ok {
			return short + " " + rest
		}
	}
	return name
}

// advisable says what could be advised for a workload that another program controls.
type advisable struct {
	by []string
	// unit is the size of one pod if their number is controlled; 0: amounts are not counted in
	// pods. least and most bound the total.
	unit, least, most float64
}

// advisable returns which autoscalers set the workload's size or number, as far as is known at
// now. ok is false if trimtab has no advice on it.
func (s *state) advisable(base *held, now time.Time) (a advisable, ok bool) {
	size := 0.0
	if base.readable > 0 && !base.total.Unlimited {
		size = base.total.Value / float64(base.readable)
	}
	for _, resource := range []string{trimtab.Replicas, base.resource} {
		for h, k := range s.knobs(resource) {
			by := holderOf(k.ReadOnly)
			if by == "" || h.Gone(now) {
				continue
			}
			if !slices.Contains(a.by, by) {
				a.by = append(a.by, by)
			}
			switch low := declaredLeast(k); {
			case resource == trimtab.Replicas:
				a.unit, a.least, a.most = size, size*max(low, 1), size*k.Max
			case a.unit == 0 && a.most == 0: // all instances of a workload have the same bounds
				n := float64(base.instances)
				a.least, a.most = n*low, n*k.Max
			}
		}
	}
	return a, size > 0 && a.most > 0
}

// declaredLeast is a knob's declared lower bound; 0 where only what is in use now, or a
// disruption budget, is known, which says nothing of the past.
func declaredLeast(k *trimtab.KnobState) float64 {
	if k.Floor > 0 && k.Min <= k.Floor {
		return 0
	}
	return k.Min
}

// need is the least that meets an SLO under a load by the mean of the curve, within the
// bounds and in whole pods; all that there may be where nothing meets it.
func (a *advisable) need(c *trimtab.Curve, load, slo float64) float64 {
	scale, _ := c.Scale(load)
	need := c.Least(scale, slo, func(b trimtab.Band) float64 { return b.Mean })
	if need < 0 {
		return a.most
	}
	if a.unit > 0 {
		need = a.unit * math.Ceil(need/a.unit-1e-9)
	}
	return max(min(need, a.most), min(a.least, a.most))
}

// besides compares what autoscalers gave a workload with trimtab's advice on the same load; nil:
// none sets its limits.
func (s *state) besides(spans []stretch, resource string, now time.Time) (by []string, out *Advised) {
	base := s.main(resource, now)
	a, ok := s.advisable(&base, now)
	if !ok || len(a.by) == 0 || s.estimate.Value == nil || s.estimate.Value.Curve == nil || len(s.estimate.Value.Curve.Knots) == 0 || !(s.Target > 0) {
		return a.by, nil
	}
	c := s.estimate.Value.Curve
	out = &Advised{}
	for i := range spans {
		p := &spans[i]
		had, load, upper := float64(p.v[colAllocation]), float64(p.v[colLoad]), float64(p.v[colUpper])
		if math.IsNaN(had) || math.IsNaN(load) || math.IsNaN(upper) {
			continue
		}
		minutes := p.Minutes()
		out.Minutes += minutes
		if p.met != metUnknown {
			out.Measured += minutes
			out.Missed += minutes * (1 - float64(p.met)/float64(allMet))
		}
		out.Had.add(c, had, load, s.Target, minutes)
		out.Advised.add(c, a.need(c, upper, s.Target), load, s.Target, minutes)
	}
	if out.Minutes == 0 {
		return a.by, nil
	}
	out.Gain = gained(&out.Advised, &out.Had)
	if out.Had.Hours > 0 {
		percent := 100 * (out.Advised.Hours/out.Had.Hours - 1)
		out.Percent = &percent
	}
	return a.by, out
}

// others returns the section of a report on workloads that other programs control; ok is false if
// there is none.
func (r *Report) others() (s Section, ok bool) {
	hours := hoursOf(r.Resource)
	s = Section{Title: "Held by others (advice only)",
		Head: []string{"Workload", "Held by", "Minutes compared", hours + " given", "Advised", "Difference", "Missed, measured", "Missed as given, by curve (band)", "Missed as advised (band)"},
		Text: []string{"An autoscaler turns these, and trimtab only advises. Advised is the least that meets the SLO by the mean of the newest curve under the upper bound of the load that was forecast then, within the bounds of the knob, and in whole pods of today's size where their number is held. The time that pods take to start, the margin of the planner and what the pool has for others are not in it."}}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		if len(w.HeldBy) == 0 {
			continue
		}
		row := []string{w.Workload, strings.Join(w.HeldBy, ", "), Missing, Missing, Missing, Missing, Missing, Missing, Missing}
		if a := w.Advised; a != nil {
			row[2], row[3], row[4] = Number(a.Minutes), Number(a.Had.Hours), Number(a.Advised.Hours)
			if a.Percent != nil {
				row[5] = signed(math.Round(10**a.Percent)/10) + "%"
			}
			if a.Measured > 0 {
				row[6] = fmt.Sprintf("%s of %s min", Number(a.Missed), Number(a.Measured))
			}
			row[7], row[8] = a.Had.missed(a.Minutes), a.Advised.missed(a.Minutes)
		}
		s.Rows = append(s.Rows, row)
	}
	return s, len(s.Rows) > 0
}

// missed says in how many of the given minutes the SLO is missed.
func (b *ByCurve) missed(of float64) string {
	left := func(met float64) string { return Number(max(0, of-met)) }
	return fmt.Sprintf("%s min (%s to %s)", left(b.SLOMinutes.Mean), left(b.SLOMinutes.Upper), left(b.SLOMinutes.Lower))
}
