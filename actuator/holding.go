package actuator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Holding returns the state of all knobs as last read.
func (a *Actuator) Holding() *trimtab.Holding {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &trimtab.Holding{
		Pool: a.config.Pool, Host: a.config.Host, Life: a.life, Time: a.clock.wall(),
		Epoch: a.fence.position.Epoch, Sequence: a.fence.position.Sequence,
		Paused: !a.fence.paused.IsZero(), Capacity: maps.Clone(a.host.capacity), Pace: a.knobs.pace(),
	}
	if n := len(a.knobs.all); n > 0 {
		h.Targets = make([]trimtab.KnobState, 0, n)
	}
	if left := a.host.left; left != nil {
		h.Capacity, h.Divided = maps.Clone(left), true
	}
	h.Unmet = a.unmet()
	left := trimtab.SecondsOf(a.fence.left())
	for _, k := range a.knobs.all {
		baseline := k.now
		if k.entry != nil {
			baseline, h.LeaseLeft = k.entry.Baseline, left
		}
		h.Targets = append(h.Targets, trimtab.KnobState{
			KnobID: k.KnobID, Knob: k.named, Unit: k.unit,
			Shared: k.can.Shared != nil, Capped: k.capped(), Reserves: k.can.Shared != nil && k.can.Shared.Reserves(), Now: k.resting(), Fast: a.lending.stateOf(k), Effective: k.effective, Since: k.since, Baseline: baseline, Min: k.least(), Max: k.Max, Floor: k.floor, Problem: a.host.reportOf(k), Barred: k.barred, Standing: k.standing,
		})
	}
	if t := a.instances.troubles(); len(t) > 0 {
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

// A holding is one message, of mostToSay bytes at most (4 MiB less its frame, see
// codec.MaxBytes). The states of thousands of knobs fit where each says little: the texts for
// people go first, and an instance whose knobs would not fit even so is not taken up.

const (
	mostToSay = 4<<20 - 64<<10
	// stateBytes is what the state of a knob takes in a message beside its texts: the names of
	// its fields, numbers and times.
	stateBytes = 216
	// briefText is how much of a text is left where there is no room for more.
	briefText = 40
	// typicalNode is how long the name of a node is taken to be, before it is known.
	typicalNode = 40
)

// said is how many bytes a state takes in a message, or a few more.
func said(k *trimtab.KnobState) int {
	n := stateBytes + names(&k.KnobID) + len(k.Knob) + len(k.Problem) + len(k.Barred)
	if k.Unit != "" {
		n += len(`"unit":"",`) + len(k.Unit)
	}
	if k.Effective != nil {
		n += 30
	}
	if k.Fast != nil {
		n += 500
	}
	if s := k.Standing; s != nil {
		n += 40 + len(s.Node) + len(s.Phase) + len(s.By) + len(s.LeftBy) + len(s.Note) + 40*len(s.Starts)
	}
	return n
}

func names(id *trimtab.KnobID) int {
	return len(id.Pool) + len(id.Host) + len(id.Workload) + len(id.Instance) + len(id.Resource)
}

// leastSaid is said of a state without texts.
func (h *held) leastSaid() int { return stateBytes + names(&h.KnobID) + typicalNode }

// fits says why the knobs of one more instance cannot be told of.
func (ks *knobs) fits(added []*held) error {
	if len(ks.all) < MaxKnobs {
		return nil // as many always fit
	}
	sum := 0
	for _, list := range [][]*held{ks.all, added} {
		for _, h := range list {
			sum += h.leastSaid()
		}
	}
	if sum > mostToSay {
		return fmt.Errorf("with it what this host tells of its %d knobs would not fit into a message of %d bytes: %w", len(ks.all)+len(added), mostToSay, trimtab.ErrRefused)
	}
	return nil
}

// brief shortens the texts of states that would not fit into one message.
func brief(all []trimtab.KnobState) {
	sum := 0
	for i := range all {
		sum += said(&all[i])
	}
	if sum <= mostToSay {
		return
	}
	for i := range all {
		k := &all[i]
		k.Knob, k.Unit, k.Since = "", "", k.Since.Truncate(time.Second)
		k.Problem, k.Barred = cut(k.Problem), cut(k.Barred)
		if s := k.Standing; s != nil && len(s.By)+len(s.LeftBy)+len(s.Note) > 2*briefText {
			short := *s
			short.By, short.LeftBy, short.Note = cut(s.By), cut(s.LeftBy), ""
			k.Standing = &short
		}
	}
}

// cut shortens a text, at a character.
func cut(text string) string {
	if len(text) <= briefText {
		return text
	}
	return fmt.Sprintf("%.*s…", briefText/2, text)
}
