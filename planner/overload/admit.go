package overload

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// This file divides a pool whose members have a limit on requests in service before them (Limited).
// Such a member has no queue that grows without end: with any share it answers a part of its
// requests in time, and the others are refused before they reach it.

// prefers lowers the utility of a member of which nothing is served yet, as a fraction of it, and that of
// one served in part by a part of this, for an objective that chooses whom to serve. So two members of
// nearly the same utility do not swap with every report.
const prefers = 0.1

// moved is the relative change of a demand with which the pool is divided again, and of a share that is
// worth a change. Unlike the choice of whom to serve (choose.go), a change costs no backlog.
const moved = 0.1

// An objective may leave a member so little that its gate refuses requests of its most important class,
// of which nobody knows the number. So a share is at first no less than the entitlement, or than half of
// it for an objective that serves all alike. Then it falls by a quarter each time that its reports, which
// come within the time shows, have fewer important requests refused than the part few of those answered.
// With more of them, the member keeps, or gets, what can answer these, too, until the overload ends. So an
// overload of a minute costs few important requests; what an objective gains by choosing among services
// is small beside them.
const few, less, shows = 0.01, 0.75, 15 * time.Second

// keep updates what a member keeps with a report.
func (t *WorkloadState) keep(r Report) {
	if !t.Admitted {
		return
	}
	old := t.weight(r.Time, inTime)
	t.Refused, t.Important = old*t.Refused+(1-old)*r.Refused, old*t.Important+(1-old)*r.Important
	switch answered := 1 - t.Refused; {
	case t.Important > few*answered:
		part := answered
		if t.Asked > 0 && r.Time.Sub(t.MovedAt) >= shows { // it may answer less than its share and demand let expect
			part = math.Max(part, full*float64(t.Slice)/t.Asked)
		}
		t.Kept, t.Sure, t.Asked = math.Min(1, math.Max(t.Kept, part*(1+t.Important/math.Max(answered, few)))), true, 0
	case !t.Sure && t.Kept > 0 && r.Time.Sub(t.MovedAt) >= shows:
		t.Kept, t.Asked, t.MovedAt = less*t.Kept, 0, r.Time
	}
}

// keeps returns the least share of each member, in units: what has its important requests answered,
// as far as the pool is enough for that of all.
func (d *decision) keeps() []int {
	out, kept, rest := make([]int, len(d.Members)), make([]float64, len(d.Members)), float64(d.Units)
	sum := 0.0
	for i := range d.Members {
		m := &d.Members[i]
		t, size := &m.State, float64(d.size(m))
		if out[i] = d.least(m); !m.Limited {
			out[i] = max(out[i], d.size(m))
		} else if d.Weighs != nil {
			if t.Slice == 0 {
				if t.Kept, t.MovedAt = math.Min(1, m.Entitled/d.Unit/size), d.Now; d.Policy == nil {
					t.Kept /= 2
				}
			}
			kept[i] = math.Max(0, t.Kept*size-float64(out[i]))
		}
		rest, sum = rest-float64(out[i]), sum+kept[i]
	}
	for i := range out {
		out[i] += int(kept[i] * math.Min(1, math.Max(0, rest)/math.Max(sum, 1)))
	}
	return out
}

// limits reports whether the pool can be divided by refusing requests: every member that wants more
// than its entitlement has a limit, and the other members without one can have all that they want
// beside the least shares of those with a limit.
func (d *decision) limits() bool {
	most, limited, sum := 1.0, false, 0
	if d.admitted() {
		most = fuller
	}
	for i := range d.Members {
		m := &d.Members[i]
		if m.Limited {
			limited = true
			sum += d.least(m)
			continue
		}
		if m.wants(d.Unit)/full > most*m.Entitled/d.Unit {
			return false
		}
		sum += max(d.least(m), d.size(m))
	}
	return limited && sum <= d.Units
}

// size returns the share at which a member is served in full, in units, at least 1 and at most its
// maximum.
func (d *decision) size(m *Member) int {
	return min(int(math.Ceil(m.wants(d.Unit)/full)), max(m.Max, m.Min, 1))
}

// admitted reports whether the last round divided the pool by admission.
func (d *decision) admitted() bool {
	for i := range d.Members {
		if d.Members[i].State.Admitted {
			return true
		}
	}
	return false
}

// forget clears the state of the other way to divide the pool (choose.go).
func (d *decision) forget() {
	d.state.ChoseAt, d.state.AskedAt, d.state.Capping = time.Time{}, time.Time{}, false
	for i := range d.Members {
		d.Members[i].State.End()
	}
}

// admit divides the pool again if that is due, and marks the members that are served only in part.
func (d *decision) admit() {
	if !d.admitted() {
		d.forget()
	}
	due, sum := d.Now.Sub(d.state.AskedAt) >= Dwell, 0
	for i := range d.Members {
		t, wants := &d.Members[i].State, d.Members[i].wants(d.Unit)
		due = due || t.Slice == 0 || math.Abs(wants-t.Asked) > moved*math.Max(t.Asked, 1)
		sum += t.Slice
	}
	if due || sum > d.Units {
		d.state.AskedAt = d.Now
		share := d.parts()
		differs := sum > d.Units || d.differs(share, moved, moved)
		for i := range d.Members {
			m := &d.Members[i]
			if m.State.Asked = m.wants(d.Unit); differs {
				if m.State.Slice != share[i] {
					m.State.MovedAt = d.Now
				}
				m.State.Slice = share[i]
			}
		}
	}
	for i := range d.Members {
		m := &d.Members[i]
		most := full // a member that wants more than this part of its share is served in part
		if m.State.Admitted && !m.State.Partial {
			most = fuller
		}
		m.State.Admitted, m.State.Partial = true, m.Limited && m.State.Slice < m.Max && m.wants(d.Unit) > most*float64(m.State.Slice)
	}
}

// parts divides the pool: by the objective if it weighs utilities, else by entitlement. The utility of
// a member is proportional to the share of its requests that is answered. The rest of the pool goes to
// the members that want more.
func (d *decision) parts() []int {
	prob := &policy.Problem{Units: d.Units, Unit: d.Unit, Groups: d.Groups, Stop: d.Stop}
	size, entitled, share, least := make([]int, len(d.Members)), make([]int, len(d.Members)), make([]int, len(d.Members)), d.keeps()
	for i := range d.Members {
		m := &d.Members[i]
		w := m.Workload
		size[i] = d.size(m)
		w.Demand, w.Max = size[i], max(min(d.Units, size[i]), w.Min)
		w.Min = min(least[i], w.Max)
		slo := m.SLO
		if d.Policy != nil {
			slo *= 1 - prefers*math.Max(0, 1-float64(m.State.Slice)/float64(size[i]))
		}
		w.Curve, w.Current = ramp(size[i], d.Unit, slo, m.Curve), min(m.State.Slice, w.Max)
		prob.Workloads = append(prob.Workloads, w)
		share[i], entitled[i] = max(m.Min, w.Min), min(size[i], int(m.Entitled/d.Unit))
	}
	d.hand(share, entitled)
	if d.Weighs != nil {
		if answer, err := d.Weighs.Solve(prob); err == nil {
			copy(share, answer.Units)
		}
	}
	d.hand(share, size)
	return share
}

// hand divides the rest of the pool among the members whose shares are below their sizes, in proportion
// to the entitlements.
func (d *decision) hand(share, size []int) {
	units := d.Units
	for _, s := range share {
		units -= s
	}
	for units > 0 {
		below, given := 0.0, 0
		for i := range share {
			if share[i] < size[i] {
				below += math.Max(d.Members[i].Entitled, d.Unit)
			}
		}
		for i := range share {
			if lacks := size[i] - share[i]; lacks > 0 {
				part := float64(units) * math.Max(d.Members[i].Entitled, d.Unit) / below
				more := min(lacks, max(int(part), 1), units-given)
				share[i], given = share[i]+more, given+more
			}
		}
		if given == 0 {
			return
		}
		units -= given
	}
}

// answers is the least part of what a share could answer that a gate answers in time. The simulated
// services of lab/services behind a gate had more in 95 of 100 runs (see its test).
const answers = 0.9

// Answers returns which part of its requests a workload can answer in time with an amount of CPU, if
// the others are refused before it; wants is what all of them need. Both are in cores, wants > 0.
func Answers(amount, wants float64) trimtab.Band {
	part := math.Max(0, math.Min(1, amount/wants))
	return trimtab.Band{Lower: answers * part, Mean: (1 + answers) / 2 * part, Upper: part}
}

// ramp returns a curve whose performance grows in proportion to the allocation, up to slo at size
// units.
func ramp(size int, unit, slo float64, like *trimtab.Curve) *trimtab.Curve {
	c := &trimtab.Curve{Level: like.Level, Load: like.Load, Knots: []trimtab.Knot{{}}}
	c.Knots = append(c.Knots, trimtab.Knot{Allocation: float64(size) * unit, Band: trimtab.Band{Lower: slo, Mean: slo, Upper: slo}})
	return c
}
