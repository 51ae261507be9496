package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/replicas"
)

// setNumber notes the number that a decision wants, as far as it can be had now: of what is free, each
// that comes begins with so much, and g bounds how many go.
func (s *seat) setNumber(now time.Time, w *replicas.Workload, d *replicas.Decision, free, each float64, g *guard.Config) {
	c := &s.count
	c.from, c.to, c.mode = w.Replicas, d.Replicas, trimtab.Act
	if s.Mode != trimtab.Act || w.Count.Barred != "" || s.scale.Held.Barred != "" {
		c.mode = trimtab.Recommend
	}
	var held []string
	for _, h := range d.Held {
		if h.Resource == trimtab.Replicas && h.Code != replicas.Missing {
			held = append(held, h.Text)
		}
	}
	why := numberWhy(s, now, w, d)
	if w.Count.Barred != "" && s.free {
		c.to = d.Advised.Replicas
		held = append(held[:0:0], "only recommended: "+w.Count.Barred)
	}
	switch grows := slices.ContainsFunc(s.knobs, func(i instances.Instance) bool { return i.Set > i.Has+s.of.Quantum()/2 }); {
	case c.to < c.from && c.mode == trimtab.Act && grows && s.barred == "":
		// What stays has more before others go.
		c.to, c.note = c.from, fmt.Sprintf("%d instances are enough, once they are larger", c.to)
	case c.to < c.from && !g.Disabled && c.mode == trimtab.Act:
		fall := g.Fall
		if fall == 0 {
			fall = 0.2
		}
		if least := c.from - max(1, int(fall*float64(c.from))); c.to < least {
			c.to, held = least, append(held, fmt.Sprintf("the guard lets at most %.0f%%, or one, go in a round", 100*fall))
		}
	case c.to > c.from && c.mode == trimtab.Act:
		if most := c.from + int(free/math.Max(each, s.of.Quantum())+grain); c.to > most {
			c.to, held = max(most, c.from), append(held, fmt.Sprintf("the pool has %s left, and one more begins with %s",
				trimtab.AmountOf(s.of.Name, trimtab.Units(free)), trimtab.AmountOf(s.of.Name, trimtab.Units(each))))
			c.why.Binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: "what one more instance begins with"}
		}
	}
	if st := s.scale.Held.Standing; c.to > c.from && st != nil && st.Most > 0 && float64(c.to) >= st.Most && c.to < s.Count.Max {
		c.why.Binding = trimtab.Binding{Kind: trimtab.BindingMax, Detail: st.By}
	}
	if c.note == "" && !c.moves() {
		c.note = strings.Join(held, "; ")
	}
	c.why.Summary = strings.Join(append([]string{why}, held...), "; ")
	if c.why.Binding.Kind == "" {
		by := ""
		if st := s.scale.Held.Standing; st != nil {
			by = st.By
		}
		c.why.Binding = d.Binding(by)
	}
}

// numberWhy says what is needed, and what the instances that are there can give.
func numberWhy(s *seat, now time.Time, w *replicas.Workload, d *replicas.Decision) string {
	if s.number.over(now, s.Count) {
		return fmt.Sprintf("it has had no load for %v", s.Count.Cooldown)
	}
	if !s.free {
		return "nothing is known of it: its fallback"
	}
	show := func(v float64) string { return trimtab.AmountOf(s.of.Name, trimtab.Units(math.Round(v*1000)/1000)) }
	need := math.Max(w.Need.Round, w.Need.Start)
	text := fmt.Sprintf("it needs %s of %s at the upper bound of its load", show(need), s.of.Name)
	if s.count.to < s.count.from || d.Advised.Replicas < w.Replicas {
		return text + fmt.Sprintf(", and instances can have %s each", show(w.Size.Max))
	}
	return text + fmt.Sprintf(", and the %d that are there can have %s in place", len(s.knobs), show(float64(s.easy)*s.of.Unit))
}

// scale makes the action on the number of a seat's instances.
func (r counting) scale(s *seat) {
	c := &s.count
	if s.scale == nil || !c.moves() {
		return
	}
	list, verb := &r.grows, "raised"
	if c.to < c.from {
		list, verb = &r.shrinks, "lowered"
	}
	why := c.why
	if c.mode == trimtab.Recommend {
		list, verb = &r.advice, issue.WouldBe+verb
	}
	why.NextCheck = r.planner.next
	why.Summary = fmt.Sprintf("replicas %s from %d to %d: %s", verb, c.from, c.to, why.Summary)
	*list = append(*list, trimtab.Action{KnobID: s.scale.KnobID, Expect: s.scale.Held.Now, Set: trimtab.Units(float64(c.to)), Mode: c.mode, Why: why})
}

// clusterReason adds what a cluster has to do with what instances get.
func clusterReason(s *seat, why trimtab.Reason) trimtab.Reason {
	if s.Mode == trimtab.Act && s.barred != "" {
		why.Summary += "; only recommended: " + s.barred
	}
	if by := boundBy(s); why.Binding.Kind == trimtab.BindingMax && why.Binding.Detail == "" {
		why.Binding.Detail = by
	}
	return why
}
