package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/spread"
)

// Where CPU is shared by weight on several hosts, each host by itself serves its workloads by
// entitlement, as one host does. There is one thing to decide more: a host may be full while
// another, on which one of its workloads has an instance, too, is not. The kernel shares the full
// one, load balancers send work there as long as it is answered, and who is on that host alone is
// late. So its share is raised, and the others make room, whose work their load balancers then
// send elsewhere:
//
//	x_ih >= 0,  Σ_h x_ih = t n_i,  Σ_i x_ih <= C_h,  the greatest t        (package spread)
//	share_ih = max(crumb, x_ih) and, by entitlement, what that leaves of C_h
//
// of the cost n_i of the requests of workload i. Weights alone do not do where the others have
// CPUs of their own to use up the limit of the host: if requests are still late after weighs,
// what makes room has a limit, too. It is tried for helps; if requests are late even then, all go
// back to their entitlements. Where the needs do not fit (t < 1), they have these anyway.

const (
	// crowded is the part of what a host has that is wanted there where it is full, roomy the
	// part below which nobody need make room any more.
	crowded, roomy = 0.9, 0.8
	// crumb is the part of its entitlement that an instance keeps whose work is to be elsewhere:
	// enough for its probes.
	crumb = 0.01
	// sets is for how long requests must be late before somebody makes room, dwell how long a
	// choice stands at least, and barred for how long none is made after one that did not help.
	sets, dwell, barred = 2 * time.Second, time.Minute, 10 * time.Minute
	// worth is the least part of its work on a full host that an instance goes on with.
	worth = 0.5
	// weighs is for how long weights alone are tried, and helps for how long limits are: as
	// long as it takes to work off the backlog from before.
	weighs, helps = 5 * time.Second, 2 * time.Minute
)

// hosting is the pass that sets what the instances on each host have.
type hosting struct{ *decision }

// shift is what is kept of the time in which workloads make room on full hosts.
type shift struct {
	// since is since when requests are late on a full host; zero: they are not.
	since time.Time
	// choseAt is when shares were decided, room since when nobody need make room for them;
	// barred until when none are, since they did not help.
	choseAt, room, barred time.Time
	capping               bool
	of                    map[trimtab.KnobID]shifted
}

// shifted is the share of an instance, in the pool's unit; makes: it makes room.
type shifted struct {
	share float64
	makes bool
}

// hosted is what was decided for an instance on its host: its share, and whether that is a limit,
// too.
type hosted struct {
	aim    float64
	capped bool
}

// berth is a host, or a node of a cluster, and the instances there that share it.
type berth struct {
	has     float64
	at      int // among those of the problem
	members []berthed
}

// berthed is an instance of a seat.
type berthed struct {
	*seat
	in *instance
}

// shares sets what the instances of seats that share by weight are to have, where they are on
// hosts of a pool that has several.
func (r hosting) shares(asked []*seat, all []*berth) {
	sh := &r.planner.shift
	late := slices.ContainsFunc(all, (*berth).late)
	if !late {
		sh.since = time.Time{}
	} else if sh.since.IsZero() {
		sh.since = r.now
	}
	lasts := func(d time.Duration) bool { return late && r.now.Sub(sh.since) >= d }
	fits := true
	switch {
	case len(sh.of) == 0 && lasts(sets) && !r.now.Before(sh.barred):
		fits = r.shift(all)
	case len(sh.of) == 0:
	case r.roomy(all), !r.same(all):
		sh.of = nil
	case lasts(helps): // since before they were decided: they did not help
		sh.of, sh.barred = nil, r.now.Add(barred)
	case lasts(dwell) && r.now.Sub(sh.choseAt) >= dwell:
		if fits = r.shift(all); !fits {
			sh.of = nil
		}
	case !sh.capping && r.now.Sub(sh.choseAt) >= weighs && lasts(sets):
		sh.capping = true
	}
	sh.capping = sh.capping && len(sh.of) > 0
	detail := "needs fit; the kernel shares"
	switch {
	case len(sh.of) > 0:
		detail = "needs fit the pool, but not each host; what has instances elsewhere makes room"
	case !fits:
		detail = "needs do not fit; the kernel shares by entitlement"
	case late:
		detail = "requests are late on a full host; the kernel shares by entitlement"
	}
	for _, s := range asked {
		s.turn.Held, s.turn.Rank, s.turn.Slice, s.turn.Capped = 0, 0, 0, false // of another host's overload
		s.solved, s.served, s.stays, s.byHost = true, true, true, true
		s.aim = policy.UpUnits(s.now, s.of.Unit)
		s.binding = trimtab.Binding{Kind: trimtab.BindingIdle, Detail: detail}
		if len(sh.of) > 0 {
			s.binding.Kind = trimtab.BindingHost
		}
	}
	for _, b := range all {
		entitled := r.entitledOn(b)
		for k, m := range b.members {
			m.in.aim = entitled[k]
			if to, ok := sh.of[m.in.KnobID]; ok {
				m.in.aim, m.in.capped = to.share, to.makes && sh.capping
			}
		}
	}
}

// berths are the hosts of the instances of seats that can be turned, in order of their names,
// with what is left for those: all of them no more than the pool leaves.
func (r hosting) berths(asked []*seat) []*berth {
	others := r.others(asked, 0)
	room, by, out, sum := others.Room(), map[int]*berth{}, []*berth(nil), 0.0
	for _, s := range asked {
		for i := range s.knobs {
			k := &s.knobs[i]
			if k.stuck {
				continue
			}
			b := by[k.site]
			if b == nil {
				b = &berth{at: len(out)}
				if by[k.site] = b; bounded(room, k) {
					b.has = math.Max(0, room[k.site])
				}
				out = append(out, b)
			}
			if b.members = append(b.members, berthed{s, k}); !bounded(room, k) {
				b.has += k.now // nobody says what there is
			}
		}
	}
	for _, b := range out {
		sum += b.has
	}
	if left := math.Max(0, r.idle(0, others)); sum > left {
		for _, b := range out {
			b.has *= left / sum
		}
	}
	return out
}

// wanted is what the requests of the workloads cost on a host, by their parts of the load.
func (b *berth) wanted() (sum float64) {
	for _, m := range b.members {
		sum += m.cores() * m.in.share
	}
	return sum
}

// cores is what the requests of its workload cost, > 0.
func (m berthed) cores() float64 {
	v := m.turn.Wants
	if !(v > 0) {
		v = float64(m.needAt(-1)) * m.of.Unit
	}
	return math.Max(v, m.of.Unit)
}

// late reports whether requests are late of a workload on a full host; of those whose requests
// have a cost that is known.
func (b *berth) late() bool {
	return b.wanted() > crowded*b.has && slices.ContainsFunc(b.members, func(m berthed) bool { return m.missed > 1 }) &&
		!slices.ContainsFunc(b.members, func(m berthed) bool { return m.estimate.Cost == nil && m.unserved() })
}

// shift decides who makes room, and reports whether the needs fit the hosts.
func (r hosting) shift(all []*berth) bool {
	p := spread.Places{}
	of, now := map[*seat]int{}, [][]float64(nil)
	for _, b := range all {
		p.Hosts = append(p.Hosts, b.has)
		for _, m := range b.members {
			i, known := of[m.seat]
			if !known {
				i = len(p.Needs)
				of[m.seat] = i
				p.Needs, p.On, now = append(p.Needs, m.cores()), append(p.On, nil), append(now, nil)
			}
			if on := p.On[i]; len(on) == 0 || on[len(on)-1] != b.at {
				p.On[i], now[i] = append(p.On[i], b.at), append(now[i], 0)
			}
			now[i][len(now[i])-1] += p.Needs[i] * m.in.share
		}
	}
	before := spread.Places{Needs: p.Needs, Hosts: p.Hosts, On: slices.Clone(p.On)}
	x, times := p.Solve(now)
	if times < 1 {
		return false
	}
	left := slices.Clone(now)
	for _, b := range all {
		if b.wanted() > crowded*b.has {
			x = spare(&p, x, left, b.at)
		}
	}
	sh := &r.planner.shift
	sh.of, sh.choseAt, sh.room = map[trimtab.KnobID]shifted{}, r.now, time.Time{}
	for _, b := range all {
		r.shiftOn(b, func(s *seat) (to, was float64) {
			i := of[s]
			if k := slices.Index(p.On[i], b.at); k >= 0 {
				to = x[i][k]
			}
			return to, now[i][slices.Index(before.On[i], b.at)]
		})
	}
	return true
}

// spare has workloads do none of their work on a host where they would have less than worth of
// what they do there, as long as the needs fit: a share that is too small to serve in time what
// a load balancer sends makes more of it late than a crumb, to which hardly any is sent. now, what
// is done on each host, is kept in step.
func spare(p *spread.Places, x, now [][]float64, host int) [][]float64 {
	for i := range p.On {
		k := slices.Index(p.On[i], host)
		if k < 0 || len(p.On[i]) < 2 || x[i][k] >= worth*now[i][k] {
			continue
		}
		without := spread.Places{Needs: p.Needs, Hosts: p.Hosts, On: slices.Clone(p.On)}
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

// shiftOn sets the shares on one host, by what work of each workload is to be there, and was.
func (r hosting) shiftOn(b *berth, work func(*seat) (to, was float64)) {
	entitled := r.entitledOn(b)
	least, wants, was := make([]float64, len(b.members)), make([]float64, len(b.members)), make([]float64, len(b.members))
	low, sum, all := 0.0, 0.0, 0.0
	for k, m := range b.members {
		to, before := work(m.seat)
		n := float64(b.count(m.seat))
		least[k] = math.Max(crumb*entitled[k], math.Max(m.dial.Min, m.in.min))
		wants[k], was[k] = math.Max(to/n, least[k]), before/n
		low, sum, all = low+least[k], sum+wants[k], all+entitled[k]
	}
	for k, m := range b.members {
		v := wants[k]
		switch {
		case sum <= b.has && all > 0:
			v += (b.has - sum) * entitled[k] / all
		case sum > b.has && sum > low: // no crumb is taken
			v = least[k] + (wants[k]-least[k])*math.Max(0, b.has-low)/(sum-low)
		}
		u := m.of.quantum()
		v = math.Floor(v/u+grain) * u
		r.planner.shift.of[m.in.KnobID] = shifted{share: v, makes: v < was[k] && b.wanted() > crowded*b.has}
	}
}

// count is how many instances of a seat are there.
func (b *berth) count(s *seat) (n int) {
	for _, m := range b.members {
		if m.seat == s {
			n++
		}
	}
	return n
}

// entitledOn is what each instance on a host is entitled to there: an equal part of what its
// workload is, of those that are there.
func (r hosting) entitledOn(b *berth) []float64 {
	var members []entitlement.Member
	for k, m := range b.members {
		if k > 0 && b.members[k-1].seat == m.seat {
			continue // they are one after the other
		}
		part := float64(b.count(m.seat)) / float64(len(m.knobs))
		least := 0.0
		for _, o := range b.members {
			if o.seat == m.seat {
				least += math.Max(m.dial.Min, o.in.min)
			}
		}
		members = append(members, entitlement.Member{Name: m.seat.Name, Group: m.Group, Part: entitlement.Part{Weight: m.Weight, Least: math.Max(m.dial.Guarantee*part, least)}})
	}
	entitled := entitlement.Divide(b.has, members, entitledGroups(r.planner))
	out := make([]float64, len(b.members))
	for k, m := range b.members {
		out[k] = entitled[m.seat.Name] / float64(b.count(m.seat))
		if u := m.of.quantum(); math.Abs(out[k]-m.in.now) < m.of.Unit {
			out[k] = m.in.now
		} else {
			out[k] = math.Floor(out[k]/u+grain) * u
		}
	}
	return out
}

// same reports whether the shares that were decided are of just these instances, and their hosts
// still have as much.
func (r hosting) same(all []*berth) bool {
	n := 0
	for _, b := range all {
		sum := 0.0
		for _, m := range b.members {
			to, ok := r.planner.shift.of[m.in.KnobID]
			if !ok {
				return false
			}
			n, sum = n+1, sum+to.share
		}
		if sum > b.has*(1+grain)+grain || sum < crowded*b.has {
			return false
		}
	}
	return n == len(r.planner.shift.of)
}

// roomy reports whether nobody needs to make room any more: for dwell each host would have room
// if every workload's load were spread evenly.
func (r hosting) roomy(all []*berth) bool {
	sh := &r.planner.shift
	for _, b := range all {
		sum := 0.0
		for _, m := range b.members {
			sum += m.cores() / float64(len(m.knobs))
		}
		if sum > roomy*b.has {
			sh.room = time.Time{}
			return false
		}
	}
	if sh.room.IsZero() {
		sh.room = r.now
	}
	return r.now.Sub(sh.room) >= dwell
}

// settle sets what the instances of a seat whose shares were decided are to have.
func settle(s *seat) {
	s.evens = false
	for i := range s.knobs {
		if k := &s.knobs[i]; !k.stuck {
			k.set, k.Fresh = math.Min(k.aim, k.most), false
		}
	}
	if len(s.knobs) == 1 {
		s.grant.Set = s.knobs[0].set
	}
}

// shareOf says why a share is set.
func shareOf(s *seat, show func(trimtab.Amount) string) string {
	if len(s.knobs) > 1 || s.grant.Set == s.now {
		return s.binding.Detail
	}
	verb := "raised"
	if s.grant.Set < s.now {
		verb = "lowered"
	}
	return fmt.Sprintf("%s from %s to %s: %s", verbOf(s, verb), show(s.has()), show(trimtab.Units(s.grant.Set)), s.binding.Detail)
}
