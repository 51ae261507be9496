package local

import "math"

// Tick reads one look and returns what to write first. Call Grow once after each Tick.
func (h *Host) Tick(look *Look) Decision {
	h.shrinks, h.grows, h.asks = h.shrinks[:0], h.grows[:0], h.asks[:0]
	h.waits = false
	elapsed := look.At - h.at
	if h.began && elapsed >= 0 && elapsed < Tick/2 {
		return Decision{} // at most one write per period
	}
	first, late := !h.began, elapsed < 0 || elapsed > latePeriods*Tick
	d := Decision{Expired: look.At >= h.plan.Until, Late: late && !first}
	if !first && !late {
		for i := range h.groups {
			h.groups[i].account(elapsed.Seconds())
		}
	}
	h.at, h.began = look.At, true
	full := look.Contention != nil && !(*look.Contention >= 0 && *look.Contention <= fullHost)
	for i := range h.groups {
		r := Reading{Set: math.NaN()}
		if i < len(look.Groups) {
			r = look.Groups[i]
		}
		h.want[i] = h.wanted(&h.groups[i], &r, d.Late || d.Expired)
	}
	if full {
		h.noRise()
	}
	h.divide()
	h.settle(d.Late || d.Expired)
	h.loans()
	d.Shrinks, d.Asks, h.waits = h.shrinks, h.asks, true
	return d
}

// wanted is the quota that one group should have if there is enough; with rest: its target.
func (h *Host) wanted(g *group, r *Reading, rest bool) float64 {
	if g.gone = r.State == Gone; g.gone {
		*g = group{name: g.name, envelope: g.envelope, headroom: g.headroom, gone: true, sums: g.sums}
		return 0
	}
	g.find(r.Set)
	if fresh := g.observe(r, h.at, h.plan.Capacity); fresh {
		g.silent = 0
	} else if g.begun || r.State != Fresh {
		g.silent++
	}
	switch {
	case g.foreign:
		return g.held
	case rest || g.silent >= silentTicks:
		g.backlog = 0
		return g.envelope.Target
	case g.silent > 0 || !g.begun:
		return math.Min(g.envelope.Most(), math.Max(g.envelope.Least(), g.held))
	}
	return g.wants()
}

// noRise raises no quota above the present one or the target: on a host whose tasks wait for CPUs
// a larger quota gains nothing. It asks for a round.
func (h *Host) noRise() {
	for i := range h.groups {
		g := &h.groups[i]
		most := math.Max(g.held, g.envelope.Target)
		if !g.foreign && !g.gone && h.want[i] > most*risesOver && g.asks(h.at) {
			h.asks = append(h.asks, Ask{Group: i, Cause: HostFull, Since: h.at, Want: h.want[i]})
		}
		h.want[i] = math.Min(h.want[i], most)
	}
}

// divide cuts what is wanted to what is available: targets first, the rest in proportion to what
// each still wants.
func (h *Host) divide() {
	limit, sum, targets := h.limit(), 0.0, 0.0
	for i := range h.groups {
		if g := &h.groups[i]; g.foreign {
			limit -= h.want[i]
		} else if !g.gone {
			sum += h.want[i]
			targets += g.envelope.Target
		}
	}
	if sum <= limit {
		for i := range h.groups {
			h.groups[i].isShort = false
		}
		return
	}
	own, share := 0.0, 0.0
	if targets > 0 {
		share = math.Max(1, limit/targets) // of each target; nobody pays for a foreign write with its own
	}
	for i := range h.groups {
		if g := &h.groups[i]; !g.foreign && !g.gone {
			own += math.Min(h.want[i], share*g.envelope.Target)
		}
	}
	part := 0.0
	if limit > own {
		part = (limit - own) / (sum - own)
	}
	for i := range h.groups {
		g := &h.groups[i]
		if g.foreign || g.gone {
			continue
		}
		mine := math.Min(h.want[i], share*g.envelope.Target)
		got := mine + part*(h.want[i]-mine)
		h.recordShortage(i, h.want[i], got)
		h.want[i] = got
	}
}

// recordShortage asks for a round for a group that has long had less than it wants.
func (h *Host) recordShortage(i int, want, got float64) {
	g := &h.groups[i]
	short := want > got*risesOver
	if short && !g.isShort {
		g.headroomSince = h.at
	}
	if g.isShort = short; short && h.at-g.headroomSince >= loanAsks && g.asks(h.at) {
		h.asks = append(h.asks, Ask{Group: i, Cause: NoHeadroom, Since: g.headroomSince, Want: want})
	}
}

// settle decides which quotas are written, and writes the falling ones. A return to the target is
// exact; any other change must exceed a band around the present quota, as a write refills the
// period.
func (h *Host) settle(rest bool) {
	sum, limit := 0.0, h.limit()
	for i := range h.groups {
		g := &h.groups[i]
		w := h.want[i]
		exact := rest || g.silent >= silentTicks || g.held > g.envelope.Most()*(1+slack) || g.held < g.envelope.Least()*(1-slack)
		if exact && near(w, g.held) || !exact && w <= g.held*risesOver && w >= g.held*fallsUnder {
			w = g.held
		}
		h.next[i] = w
		sum += w
	}
	if sum > limit {
		copy(h.next, h.want)
	}
	for i := range h.groups {
		g := &h.groups[i]
		if g.foreign || g.gone || h.next[i] >= g.held || near(h.next[i], g.held) {
			continue
		}
		h.shrinks = append(h.shrinks, g.write(i, h.next[i]))
	}
}

// loans asks for a round for loans that last.
func (h *Host) loans() {
	for i := range h.groups {
		g := &h.groups[i]
		borrows := !g.gone && !g.foreign && math.Min(g.held, h.next[i]) > g.envelope.Target*risesOver
		if borrows && !g.borrows {
			g.loanSince = h.at
		}
		if g.borrows = borrows; borrows && h.at-g.loanSince >= loanAsks && g.asks(h.at) {
			h.asks = append(h.asks, Ask{Group: i, Cause: LongLoan, Since: g.loanSince, Want: h.next[i]})
		}
	}
}

// Grow reads the quotas found after the shrinks, in cores in the order of the plan (NaN, or too
// few: unknown), and returns the rises that fit what is free now, groups below their target
// first. A second call returns nothing.
func (h *Host) Grow(found []float64) []Write {
	if !h.waits {
		return nil
	}
	h.waits = false
	free := h.limit()
	for i := range h.groups {
		g := &h.groups[i]
		if i < len(found) && !g.gone && found[i] >= 0 {
			g.held = found[i]
		}
		free -= g.held
	}
	due, all := 0.0, 0.0
	for i := range h.groups {
		mine, more := h.shortage(i)
		due, all = due+mine, all+more
	}
	if !(free > 0) || due+all == 0 {
		return nil
	}
	first := math.Min(1, free/math.Max(due, 1e-12))
	second := math.Min(1, math.Max(0, free-due)/math.Max(all, 1e-12))
	for i := range h.groups {
		g := &h.groups[i]
		mine, more := h.shortage(i)
		set := g.held + first*mine + second*more
		if mine+more == 0 || near(set, g.held) || set < h.next[i]*(1-slack) && set < g.held*(1+(risesOver-1)/2) {
			continue
		}
		h.grows = append(h.grows, g.write(i, set))
	}
	return h.grows
}

// shortage is by how much a group is to grow up to its target, and beyond.
func (h *Host) shortage(i int) (mine, more float64) {
	g := &h.groups[i]
	if g.foreign || g.gone || h.next[i] <= g.held {
		return 0, 0
	}
	mine = math.Max(0, math.Min(h.next[i], g.envelope.Target)-g.held)
	return mine, h.next[i] - g.held - mine
}
