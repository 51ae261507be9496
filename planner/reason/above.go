package reason

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
)

// boundBy returns what in the cluster, or which parent control group, limits the size or number of
// the instances, if they are at that limit; "": nothing.
func boundBy(s *allocation.Allocation) string {
	if s.Now < (float64(s.Range.Hi)-1)*s.Resource.Unit {
		return ""
	}
	if s.Scale != nil {
		if st := s.Scale.Held.Status; st != nil && st.Most > 0 && s.Scale.Now() >= st.Most && st.Most < float64(s.Count.Max) {
			return st.By + " leaves no more instances"
		}
	}
	return s.Knobs.BoundBy(s.Resource.Unit)
}

// grain is the tolerance for rounding errors of sums.
const grain = 1e-9

// promised returns a text if a parent control group allows less than the sum of the guarantees
// below it, else "".
func (r Round) promised(s *allocation.Allocation) string {
	st := s.Knobs.Caps("")
	if st == nil || !(s.State.Guarantee > 0) || len(s.Knobs) != 1 {
		return ""
	}
	sum := 0.0
	for _, o := range r.All {
		if with := o.Knobs.Caps(s.Knobs[0].Host); o.Index == s.Index && len(o.Knobs) == 1 && with != nil && with.By == st.By {
			sum += o.State.Guarantee
		}
	}
	if sum <= st.Most+grain {
		return ""
	}
	return fmt.Sprintf("what those below it are guaranteed adds up to %s, and %s, gives %s", s.Amount(sum), st.By, s.Amount(st.Most))
}

// clusterReason adds to a reason how the cluster limits the instances.
func clusterReason(s *allocation.Allocation, why trimtab.Reason) trimtab.Reason {
	if s.Mode == trimtab.Act && s.ReadOnly != "" {
		why.Summary += "; only recommended: " + s.ReadOnly
	}
	if by := boundBy(s); why.Binding.Kind == codes.BindingMax && why.Binding.Detail == "" {
		why.Binding.Detail = by
	}
	return why
}
