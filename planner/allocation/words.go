package allocation

import (
	"github.com/trimtab/trimtab"
)

// Has returns its current amount as it is shown to people.
func (s *Allocation) Has() trimtab.Amount {
	if len(s.Knobs) == 1 {
		return s.Knobs[0].Held.Status.Cap(s.Knobs[0].Found)
	}
	if s.Knobs.Unlimited() {
		return trimtab.Unlimited()
	}
	return trimtab.Units(s.Now)
}

// Amount returns an amount of its resource as text with the unit.
func (s *Allocation) Amount(v float64) string { return AmountOf(s.Resource.Name, v) }

// AmountOf returns an amount of a resource as text with the unit.
func AmountOf(resource string, v float64) string {
	r := trimtab.ResourceOf(resource)
	text := r.Text(trimtab.Units(v))
	if !r.Bytes && !r.Switch { // the text has a unit already
		text += " " + r.Unit
	}
	return text
}
