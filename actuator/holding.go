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
			Shared: k.can.Shared != nil, Capped: k.capped(), Reserves: k.can.Shared != nil && k.can.Shared.Reserves(), Now: k.resting(), Fast: a.lending.stateOf(k), Effective: k.effective, Since: k.since, Baseline: baseline, Min: k.least(), Max: k.Max, Floor: k.floor, Problem: a.host.reportOf(k), ReadOnly: k.block.readOnly, Status: k.knobStatus,
		})
	}
	if t := a.instances.troubles(); len(t) > 0 {
		h.Targets = append(h.Targets, t...)
		slices.SortFunc(h.Targets, func(x, y trimtab.KnobState) int { return x.Compare(y.KnobID) })
	}
	brief(h.Targets)
	return h
}

// report returns the problem of the knob, or another reason why it cannot be used.
func (h *managed) report() string {
	switch {
	case h.block.contested != "":
		return h.block.contested
	case h.block.problem != "":
		return h.block.problem
	case h.block.released:
		return "released: resume takes it back"
	case !h.known:
		return "never read"
	}
	return ""
}

// A holding is one message of at most mostToSay bytes (4 MiB less its frame, see codec.MaxBytes).
// If the states of all knobs do not fit, their texts are shortened. An instance whose knobs would
// not fit even then is not controlled.

const (
	mostToSay = 4<<20 - 64<<10
	// stateBytes is the size of a knob's state in a message without its texts: the names of its
	// fields, numbers and times.
	stateBytes = 216
	// briefText is the length to which texts are shortened, in bytes.
	briefText = 40
	// typicalNode is the assumed length of a node's name before it is known.
	typicalNode = 40
)

// said returns the size of a state in a message, in bytes, or a little more.
func said(k *trimtab.KnobState) int {
	n := stateBytes + names(&k.KnobID) + len(k.Knob) + len(k.Problem) + len(k.ReadOnly)
	if k.Unit != "" {
		n += len(`"unit":"",`) + len(k.Unit)
	}
	if k.Effective != nil {
		n += 30
	}
	if k.Fast != nil {
		n += 500
	}
	if s := k.Status; s != nil {
		n += 40 + len(s.Node) + len(s.Phase) + len(s.By) + len(s.LeftBy) + len(s.Note) + 40*len(s.Starts)
	}
	return n
}

func names(id *trimtab.KnobID) int {
	return len(id.Pool) + len(id.Host) + len(id.Workload) + len(id.Instance) + len(id.Resource)
}

// leastSaid returns the size of the knob's state without texts, in bytes.
func (h *managed) leastSaid() int { return stateBytes + names(&h.KnobID) + typicalNode }

// fits returns an error if the knobs of one more instance would not fit into a holding.
func (ks *knobs) fits(added []*managed) error {
	if len(ks.all) < MaxKnobs {
		return nil // this many always fit
	}
	sum := 0
	for _, list := range [][]*managed{ks.all, added} {
		for _, h := range list {
			sum += h.leastSaid()
		}
	}
	if sum > mostToSay {
		return fmt.Errorf("with it what this host tells of its %d knobs would not fit into a message of %d bytes: %w", len(ks.all)+len(added), mostToSay, trimtab.ErrRefused)
	}
	return nil
}

// brief shortens the texts of states if they would not fit into one message.
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
		k.Problem, k.ReadOnly = cut(k.Problem), cut(k.ReadOnly)
		if s := k.Status; s != nil && len(s.By)+len(s.LeftBy)+len(s.Note) > 2*briefText {
			short := *s
			short.By, short.LeftBy, short.Note = cut(s.By), cut(s.LeftBy), ""
			k.Status = &short
		}
	}
}

// cut shortens a text without splitting a character.
func cut(text string) string {
	if len(text) <= briefText {
		return text
	}
	return fmt.Sprintf("%.*s…", briefText/2, text)
}
