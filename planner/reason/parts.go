package reason

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/instances"
)

// OfLevels returns why instances are lowered although their workload keeps its amount.
func OfLevels(s *allocation.Allocation, resource string) string {
	are := "are"
	if !s.Writes() {
		are = "would be"
	}
	return fmt.Sprintf("%sit has %s over all its instances, and those that have more than their part of it %s lowered to that", resource, s.Amount(s.Now), are)
}

// OfInstance returns why one of several instances gets its amount.
func OfInstance(s *allocation.Allocation, k *instances.Instance, why string) string {
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.Resource.Name, v) }
	from, to := show(k.Found), show(trimtab.Units(k.Set))
	if k.Placed {
		return fmt.Sprintf("from %s to %s: it has just appeared, and gets the median of what the other instances have", from, to)
	}
	if why == "" {
		return fmt.Sprintf("from %s to %s, as 1 of %d instances", from, to, len(s.Knobs))
	}
	return fmt.Sprintf("%s; this is 1 of %d instances: from %s to %s", why, len(s.Knobs), from, to)
}

// OfShare returns why a share by weight is set.
func OfShare(s *allocation.Allocation, show func(trimtab.Amount) string) string {
	if len(s.Knobs) > 1 || s.Step.Set == s.Now {
		return s.Aim.Binding.Detail
	}
	verb := "raised"
	if s.Step.Set < s.Now {
		verb = "lowered"
	}
	return fmt.Sprintf("%s from %s to %s: %s", verbOf(s, verb), show(s.Has()), show(trimtab.Units(s.Step.Set)), s.Aim.Binding.Detail)
}
