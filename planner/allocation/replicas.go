package allocation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/replicas"
)

// SetNumber records the number of instances that a decision wants, as far as it is possible now.
// free is the idle capacity, each what one more instance starts with, and g limits how many may go
// in a round.
func (s *Allocation) SetNumber(now time.Time, w *replicas.Workload, d *replicas.Decision, free, each float64, g *guard.Config) {
	c := &s.Replicas
	c.From, c.To, c.Mode = w.Replicas, d.Replicas, trimtab.Act
	if s.Mode != trimtab.Act || w.Count.ReadOnly != "" || s.Scale.Held.ReadOnly != "" {
		c.Mode = trimtab.Recommend
	}
	var held []string
	for _, h := range d.Held {
		if h.Resource == trimtab.Replicas && h.Code != replicas.Missing {
			held = append(held, h.Text)
		}
	}
	why := numberWhy(s, now, w, d)
	if w.Count.ReadOnly != "" && s.Status.Free {
		c.To = d.Advised.Replicas
		held = append(held[:0:0], "only recommended: "+w.Count.ReadOnly)
	}
	switch grows := slices.ContainsFunc(s.Knobs, func(i instances.Instance) bool { return i.Set > i.Has+s.Resource.Quantum()/2 }); {
	case c.To < c.From && c.Mode == trimtab.Act && grows && s.ReadOnly == "":
		// Enlarge the remaining instances before others go.
		c.To, c.Note = c.From, fmt.Sprintf("%d instances are enough, once they are larger", c.To)
	case c.To < c.From && !g.Disabled && c.Mode == trimtab.Act:
		fall := g.Fall
		if fall == 0 {
			fall = 0.2
		}
		if least := c.From - max(1, int(fall*float64(c.From))); c.To < least {
			c.To, held = least, append(held, fmt.Sprintf("the guard lets at most %.0f%%, or one, go in a round", 100*fall))
		}
	case c.To > c.From && c.Mode == trimtab.Act:
		if most := c.From + int(free/math.Max(each, s.Resource.Quantum())+policy.Grain); c.To > most {
			c.To, held = max(most, c.From), append(held, fmt.Sprintf("the pool has %s left, and one more begins with %s",
				trimtab.AmountOf(s.Resource.Name, trimtab.Units(free)), trimtab.AmountOf(s.Resource.Name, trimtab.Units(each))))
			c.Why.Binding = trimtab.Binding{Kind: codes.BindingCapacity, Detail: "what one more instance begins with"}
		}
	}
	if st := s.Scale.Held.Status; c.To > c.From && st != nil && st.Most > 0 && float64(c.To) >= st.Most && c.To < s.Count.Max {
		c.Why.Binding = trimtab.Binding{Kind: codes.BindingMax, Detail: st.By}
	}
	if c.Note == "" && !c.Moves() {
		c.Note = strings.Join(held, "; ")
	}
	c.Why.Summary = strings.Join(append([]string{why}, held...), "; ")
	if c.Why.Binding.Kind == "" {
		by := ""
		if st := s.Scale.Held.Status; st != nil {
			by = st.By
		}
		c.Why.Binding = d.Binding(by)
	}
}

// numberWhy returns how much is needed, and how much the existing instances can have, as a reason.
func numberWhy(s *Allocation, now time.Time, w *replicas.Workload, d *replicas.Decision) string {
	if s.Number.Over(now, s.Count) {
		return fmt.Sprintf("it has had no load for %v", s.Count.Cooldown)
	}
	if !s.Status.Free {
		return "nothing is known of it: its fallback"
	}
	show := func(v float64) string {
		return trimtab.AmountOf(s.Resource.Name, trimtab.Units(math.Round(v*1000)/1000))
	}
	need := math.Max(w.Need.Round, w.Need.Start)
	text := fmt.Sprintf("it needs %s of %s at the upper bound of its load", show(need), s.Resource.Name)
	if s.Replicas.To < s.Replicas.From || d.Advised.Replicas < w.Replicas {
		return text + fmt.Sprintf(", and instances can have %s each", show(w.Size.Max))
	}
	return text + fmt.Sprintf(", and the %d that are there can have %s in place", len(s.Knobs), show(float64(s.Range.easy)*s.Resource.Unit))
}
