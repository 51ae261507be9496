package shift

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/spread"
)

const (
	// crowded is the fraction of a host's CPU that must be wanted for it to count as full. roomy is
	// the fraction below which no workload needs to move away any more.
	crowded, roomy = 0.9, 0.8
	// worth is the least fraction of its work that an instance on a full host keeps; with less it
	// moves away completely.
	worth = 0.5
	// weighs is for how long only weights are tried, helps for how long limits are: about the time
	// to work off the old backlog.
	weighs, helps = 5 * time.Second, 2 * time.Minute
	// grain is the relative rounding error of sums.
	grain = 1e-9
)

// State is kept between rounds. Its zero value is the initial state.
type State struct {
	// Since is since when requests are late on a full host, not counting those from before a
	// choice; zero: they are not.
	Since time.Time
	// ChoseAt is when shares were decided. Room is since when they are no longer needed. Barred is
	// until when none are decided, because they did not help.
	ChoseAt, Room, Barred time.Time
	// Capping: the shares of workloads that make room are also limits.
	Capping bool
	// Shares are the decided shares; empty: all have their entitlements.
	Shares map[trimtab.KnobID]Share
}

// Share is the amount of an instance on its host, in the unit of the resource.
type Share struct {
	Amount float64
	// Makes: it makes room for others.
	Makes bool
}

// Of returns the decided share of an instance, whether it is also a limit, and whether there is
// one.
func (s *State) Of(id trimtab.KnobID) (share float64, capped, ok bool) {
	of, ok := s.Shares[id]
	return of.Amount, of.Makes && s.Capping, ok
}

// Round is the state of the pool in one round.
type Round struct {
	Now       time.Time
	Workloads []Workload
	Hosts     []Host
}

// Workload is a workload that shares CPU by weight.
type Workload struct {
	// Cost is the CPU that all its requests need, > 0, in the unit of the resource.
	Cost float64
	// Instances is the number of its instances on all hosts.
	Instances int
	// Late: it missed its SLO in more than one report; Unknown: the cost of its requests is
	// unknown, so no workload moves away from its hosts.
	Late, Unknown bool
}

// Host is a host, or a node of a cluster. Has is the total of its instances.
type Host struct {
	Has       float64
	Instances []Instance
}

// Instance is an instance of a workload on a host. Those of one workload are adjacent.
type Instance struct {
	ID trimtab.KnobID
	// Workload is its index in [Round.Workloads].
	Workload int
	// Load is the fraction of its workload's load that it serves.
	Load float64
	// Entitled is its entitlement on the host, Least the least that it may have, and Quantum the
	// step size in which it can be set, > 0.
	Entitled, Least, Quantum float64
}

// Verdict is the result of a round.
type Verdict int

const (
	// Fits: no requests are late on a full host.
	Fits Verdict = iota
	// Late: requests are late on a full host, but no workload makes room: not yet, or no longer.
	Late
	// Overloaded: the needs do not fit the hosts.
	Overloaded
	// Chosen: the instances are to have [State.Shares].
	Chosen
)

// Decide returns the result of a round, with the state after it.
func Decide(s State, r Round) (State, Verdict) {
	s.Shares = maps.Clone(s.Shares)
	d := decision{Round: r, State: s}
	fits := d.decide()
	d.Capping = d.Capping && len(d.Shares) > 0
	switch {
	case len(d.Shares) > 0:
		return d.State, Chosen
	case !fits:
		return d.State, Overloaded
	case !d.Since.IsZero():
		return d.State, Late
	}
	return d.State, Fits
}

// decision is a round while it is decided.
type decision struct {
	Round
	State
}

// decide sets the shares, and reports whether the needs fit the hosts, as far as it had to check
// that.
func (d *decision) decide() (fits bool) {
	late := slices.ContainsFunc(d.Hosts, d.late)
	if !late {
		d.Since = time.Time{}
	} else if d.Since.IsZero() {
		d.Since = d.Now
	}
	lasts := func(t time.Duration) bool { return late && d.Now.Sub(d.Since) >= t }
	switch {
	case len(d.Shares) == 0:
		if !lasts(overload.Sets) || d.Now.Before(d.Barred) {
			return true
		}
		if fits = d.choose(); fits {
			d.Since = d.Now
		}
		return fits
	case d.roomy(), !d.same():
		d.Shares = nil
	case lasts(helps): // they did not help
		d.Shares, d.Barred = nil, d.Now.Add(overload.Exclusion)
	case lasts(overload.Dwell) && d.Now.Sub(d.ChoseAt) >= overload.Dwell:
		if !d.choose() {
			d.Shares = nil
			return false
		}
	case !d.Capping && d.Now.Sub(d.ChoseAt) >= weighs && lasts(overload.Sets):
		d.Capping = true
	}
	return true
}

// wanted returns the CPU that requests on a host need, by the shares of the load that its instances
// serve.
func (d *decision) wanted(h *Host) (sum float64) {
	for i := range h.Instances {
		sum += d.work(&h.Instances[i])
	}
	return sum
}

// work returns the CPU that the requests of an instance need.
func (d *decision) work(in *Instance) float64 { return d.Workloads[in.Workload].Cost * in.Load }

func (d *decision) full(h *Host) bool { return d.wanted(h) > crowded*h.Has }

// late reports whether the host is full and one of its workloads is late. It is false while the
// cost of one of its workloads is unknown.
func (d *decision) late(h Host) bool {
	any := func(of func(Workload) bool) bool {
		return slices.ContainsFunc(h.Instances, func(in Instance) bool { return of(d.Workloads[in.Workload]) })
	}
	return d.full(&h) && any(func(w Workload) bool { return w.Late }) && !any(func(w Workload) bool { return w.Unknown })
}

// choose decides which workloads make room, and reports whether the needs fit the hosts.
func (d *decision) choose() bool {
	p, now := d.places()
	x, times := p.Solve(now)
	if times < 1 {
		return false
	}
	left := slices.Clone(now)
	for h := range d.Hosts {
		if d.full(&d.Hosts[h]) {
			x = spare(&p, x, left, h)
		}
	}
	d.Shares, d.ChoseAt, d.Room = map[trimtab.KnobID]Share{}, d.Now, time.Time{}
	for h := range d.Hosts {
		d.divide(h, func(workload int) (to float64) {
			if k := slices.Index(p.On[workload], h); k >= 0 {
				to = x[workload][k]
			}
			return to
		})
	}
	return true
}

// places returns the problem of how to distribute the work over the hosts, and the current
// distribution.
func (d *decision) places() (p spread.Problem, now [][]float64) {
	p.On, now = make([][]int, len(d.Workloads)), make([][]float64, len(d.Workloads))
	for _, w := range d.Workloads {
		p.Needs = append(p.Needs, w.Cost)
	}
	for h := range d.Hosts {
		p.Hosts = append(p.Hosts, d.Hosts[h].Has)
		for k := range d.Hosts[h].Instances {
			in := &d.Hosts[h].Instances[k]
			i := in.Workload
			if on := p.On[i]; len(on) == 0 || on[len(on)-1] != h {
				p.On[i], now[i] = append(on, h), append(now[i], 0)
			}
			now[i][len(now[i])-1] += d.work(in)
		}
	}
	return p, now
}

// spare moves all work of a workload off a host where it would keep less than the fraction worth of
// its work, as long as the needs fit. A share too small for what a load balancer sends makes more
// requests late than a tiny share, to which hardly any are sent. spare updates now, the work on
// each host.
func spare(p *spread.Problem, x, now [][]float64, host int) [][]float64 {
	for i := range p.On {
		k := slices.Index(p.On[i], host)
		if k < 0 || len(p.On[i]) < 2 || x[i][k] >= worth*now[i][k] {
			continue
		}
		without := spread.Problem{Needs: p.Needs, Hosts: p.Hosts, On: slices.Clone(p.On)}
		without.On[i] = slices.Delete(slices.Clone(p.On[i]), k, k+1)
		rest := slices.Clone(now)
		rest[i] = slices.Delete(slices.Clone(now[i]), k, k+1)
		if next, times := without.Solve(rest); times >= 1 {
			copy(now, rest)
			*p, x = without, next
		}
	}
	return x
}

// divide sets the shares on one host. work returns how much work of each workload is to be there.
func (d *decision) divide(host int, work func(workload int) float64) {
	h := &d.Hosts[host]
	count, was := map[int]float64{}, map[int]float64{}
	for k := range h.Instances {
		in := &h.Instances[k]
		count[in.Workload]++
		was[in.Workload] += d.work(in)
	}
	least, wants := make([]float64, len(h.Instances)), make([]float64, len(h.Instances))
	low, sum, all := 0.0, 0.0, 0.0
	for k, in := range h.Instances {
		least[k] = math.Max(overload.Crumb*in.Entitled, in.Least)
		wants[k] = math.Max(work(in.Workload)/count[in.Workload], least[k])
		low, sum, all = low+least[k], sum+wants[k], all+in.Entitled
	}
	for k, in := range h.Instances {
		v := wants[k]
		switch {
		case sum <= h.Has && all > 0:
			v += (h.Has - sum) * in.Entitled / all
		case sum > h.Has && sum > low: // leave every instance its least share
			v = least[k] + (wants[k]-least[k])*math.Max(0, h.Has-low)/(sum-low)
		}
		v = math.Floor(v/in.Quantum+grain) * in.Quantum
		d.Shares[in.ID] = Share{Amount: v, Makes: d.full(h) && v < was[in.Workload]/count[in.Workload]}
	}
}

// same reports whether the decided shares are those of the current instances, and still fit the
// hosts.
func (d *decision) same() bool {
	n := 0
	for _, h := range d.Hosts {
		sum := 0.0
		for _, in := range h.Instances {
			to, ok := d.Shares[in.ID]
			if !ok {
				return false
			}
			n, sum = n+1, sum+to.Amount
		}
		if sum > h.Has*(1+grain)+grain || sum < crowded*h.Has {
			return false
		}
	}
	return n == len(d.Shares)
}

// roomy reports whether shares are no longer needed: for [overload.Dwell] every host would have had
// free CPU if each workload's load were spread evenly over its instances.
func (d *decision) roomy() bool {
	for _, h := range d.Hosts {
		sum := 0.0
		for _, in := range h.Instances {
			w := d.Workloads[in.Workload]
			sum += w.Cost / float64(w.Instances)
		}
		if sum > roomy*h.Has {
			d.Room = time.Time{}
			return false
		}
	}
	if d.Room.IsZero() {
		d.Room = d.Now
	}
	return d.Now.Sub(d.Room) >= overload.Dwell
}
