package reason

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/pool"
)

// Holder is a workload with an allocation that cannot be moved while others have too little.
type Holder struct {
	Name string
	Has  float64
	// Open: it has no limit. Why says why it is not planned for; "": unknown.
	Open bool
	Why  string
}

// maxHolders is how many holders a reason names.
const maxHolders = 3

// OfShortage explains a shortage: the holders leave fewer units of a resource than the minimums of
// the asked allocations. "": they leave enough.
func OfShortage(asked []*allocation.Allocation, of *pool.Resource, left int, capacity float64, holders []Holder) string {
	least := 0
	for _, s := range asked {
		if s.Resource == of {
			least += s.Range.Lo
		}
	}
	if least <= left {
		return ""
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return cmp.Compare(b.Has, a.Has) })
	show := func(v float64) string { return allocation.AmountOf(of.Name, v) }
	var named []string
	for _, h := range holders[:min(len(holders), maxHolders)] {
		text := fmt.Sprintf("%s holds %s", h.Name, show(h.Has))
		if h.Open {
			text = fmt.Sprintf("%s, which has no limit, counts as %s", h.Name, show(h.Has))
		}
		if h.Why != "" {
			text += " (" + h.Why + ")"
		}
		named = append(named, text)
	}
	if n := len(holders) - len(named); n > 0 {
		named = append(named, fmt.Sprintf("%d more hold the rest", n))
	}
	for _, s := range asked {
		if s.Resource == of && s.Firing() && len(named) <= maxHolders {
			named = append(named, fmt.Sprintf("%s keeps %s while an alert on it fires", s.Name, show(float64(s.Range.Lo)*of.Unit)))
		}
	}
	why := fmt.Sprintf("the pool has %s, and those that are planned for have at least %s together", show(capacity), show(float64(least)*of.Unit))
	if len(named) == 0 {
		return why
	}
	return why + ": " + strings.Join(named, "; ")
}
