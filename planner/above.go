package planner

import "fmt"

// boundBy names what of the cluster, or which group above, bounds size or number of its
// instances where they are at their most; "": nothing does.
func boundBy(s *seat) string {
	if s.now < (float64(s.hi)-1)*s.of.Unit {
		return ""
	}
	if s.scale != nil {
		if st := s.scale.Held.Standing; st != nil && st.Most > 0 && s.scale.Now() >= st.Most && st.Most < float64(s.Count.Max) {
			return st.By + " leaves no more instances"
		}
	}
	return s.knobs.BoundBy(s.of.Unit)
}

// aboveOf names what lets an instance have less than is declared, for a list of reasons.
func aboveOf(s *seat) string {
	for i := range s.knobs {
		if st := s.knobs[i].Held.Standing; st != nil && st.Caps {
			return fmt.Sprintf(": %s gives %s", st.By, s.amount(st.Most))
		}
	}
	return ""
}
