package allocation

import (
	"github.com/trimtab/trimtab"
)

// Has is what the workload has, for people.
func (s *Allocation) Has() trimtab.Amount {
	if len(s.Knobs) == 1 {
		return s.Knobs[0].Held.Standing.Cap(s.Knobs[0].Found)
	}
	if s.Knobs.Unlimited() {
		return trimtab.Unlimited()
	}
	return trimtab.Units(s.Now)
}

// Amount is an amount of its resource for people, with its unit.
func (s *Allocation) Amount(v float64) string { return AmountOf(s.Of.Name, v) }

// AmountOf is an amount of a resource for people, with its unit.
func AmountOf(resource string, v float64) string {
	r := trimtab.ResourceOf(resource)
	text := r.Text(trimtab.Units(v))
	if !r.Bytes && !r.Switch { // bytes have theirs
		text += " " + r.Unit
	}
	return text
}
