package actuator

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
)

// Holding returns the state of all knobs as last read.
func (a *Actuator) Holding() *trimtab.Holding {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &trimtab.Holding{
		Pool: a.config.Pool, Host: a.config.Host, Life: a.life, Time: a.clock.wall(),
		Epoch: a.position.Epoch, Sequence: a.position.Sequence,
		Paused: !a.paused.IsZero(), Capacity: maps.Clone(a.capacity), Pace: a.pace(),
	}
	if n := len(a.knobs); n > 0 {
		h.Targets = make([]trimtab.KnobState, 0, n)
	}
	if left := a.leftByOthers(); left != nil {
		h.Capacity, h.Divided = maps.Clone(left), true
	}
	h.Unmet = a.unmet()
	for _, k := range a.knobs {
		baseline := k.now
		if k.entry != nil {
			baseline = k.entry.Baseline
			h.LeaseLeft = trimtab.SecondsOf(a.lease.left(a.clock.id, a.clock.boot()))
		}
		h.Targets = append(h.Targets, trimtab.KnobState{
			KnobID: k.KnobID, Knob: k.named, Unit: k.unit,
			Shared: k.sharing(), Capped: k.capped(), Reserves: k.reserves(), Now: k.resting(), Fast: a.fastOf(k), Effective: k.effective, Since: k.since, Baseline: baseline, Min: k.least(), Max: k.Max, Floor: k.floor, Problem: a.reportOf(k), Barred: k.barred, Standing: k.standing,
		})
	}
	if t := a.troubles(); len(t) > 0 {
		h.Targets = append(h.Targets, t...)
		slices.SortFunc(h.Targets, func(x, y trimtab.KnobState) int { return x.Compare(y.KnobID) })
	}
	brief(h.Targets)
	return h
}

// report returns the problem, with the reasons that are not the knob's.
func (h *held) report() string {
	switch {
	case h.contested != "":
		return h.contested
	case h.problem != "":
		return h.problem
	case h.released:
		return "released: resume takes it back"
	case !h.known:
		return "never read"
	}
	return ""
}

// FastTell takes in what the holding is to say of the knobs that are moved.
func (a *Actuator) FastTell(all []FastAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asks := false
	for i := range all {
		h := a.find(all[i].KnobID)
		if h == nil {
			continue
		}
		old := h.account
		account := all[i].Fast
		account.From = maps.Clone(account.From)
		h.account = &account
		asks = asks || account.Ask != nil && (old == nil || old.Ask == nil || old.Ask.Number != account.Ask.Number)
	}
	if asks {
		a.notify()
	}
}

// fastOf is what the holding says of one knob; nil: nothing.
func (a *Actuator) fastOf(h *held) *trimtab.Fast {
	if !h.moves() {
		if h.fastOff != "" && a.config.Fast {
			v := trimtab.Units(h.amount())
			return &trimtab.Fast{Off: h.fastOff, Set: v.Value, Low: v.Value, High: v.Value, Envelope: trimtab.Envelope{Floor: v.Value, Target: v.Value, Ceiling: v.Value}}
		}
		return nil
	}
	out := trimtab.Fast{}
	if h.account != nil {
		out = *h.account
	}
	out.Envelope, out.Set, out.Off = *h.envelope, h.amount(), ""
	if h.account == nil {
		out.Low, out.High = out.Set, out.Set
	}
	switch {
	case a.fast.problem != "":
		out.Off = a.fast.problem
	case !a.paused.IsZero():
		out.Off = "paused"
	case !a.loops():
		out.Off = "the loop does not run"
	}
	return &out
}
