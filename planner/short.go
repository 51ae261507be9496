package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// holder is a workload that holds what others lack.
type holder struct {
	name string
	has  float64
	// open: it has no limit. why is why it is not planned for; "": nothing is said.
	open bool
	why  string
}

// maxHolders is how many workloads a reason names that hold what others lack.
const maxHolders = 3

// shortage says who leaves fewer units of a resource, of which the pool has so much, than those that
// are asked about must have; "": they leave enough.
func shortage(asked []*seat, of *Resource, left int, capacity float64, holders []holder) string {
	least := 0
	for _, s := range asked {
		if s.of == of {
			least += s.lo
		}
	}
	if least <= left {
		return ""
	}
	slices.SortStableFunc(holders, func(a, b holder) int { return cmp.Compare(b.has, a.has) })
	show := func(v float64) string { return amountOf(of.Name, v) }
	var named []string
	for _, h := range holders[:min(len(holders), maxHolders)] {
		text := fmt.Sprintf("%s holds %s", h.name, show(h.has))
		if h.open {
			text = fmt.Sprintf("%s, which has no limit, counts as %s", h.name, show(h.has))
		}
		if h.why != "" {
			text += " (" + h.why + ")"
		}
		named = append(named, text)
	}
	if n := len(holders) - len(named); n > 0 {
		named = append(named, fmt.Sprintf("%d more hold the rest", n))
	}
	for _, s := range asked {
		if s.of == of && s.firing() && len(named) <= maxHolders {
			named = append(named, fmt.Sprintf("%s keeps %s while an alert on it fires", s.Name, show(float64(s.lo)*of.Unit)))
		}
	}
	why := fmt.Sprintf("the pool has %s, and those that are planned for have at least %s together", show(capacity), show(float64(least)*of.Unit))
	if len(named) == 0 {
		return why
	}
	return why + ": " + strings.Join(named, "; ")
}
