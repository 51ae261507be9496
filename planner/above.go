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
	if st := s.knobs.Caps(""); st != nil {
		return fmt.Sprintf(": %s gives %s", st.By, s.amount(st.Most))
	}
	return ""
}

// promised says that a group above allows less than what those below it were guaranteed; "": it
// allows that.
func (r telling) promised(s *seat) string {
	st := s.knobs.Caps("")
	if st == nil || !(s.dial.Guarantee > 0) || len(s.knobs) != 1 {
		return ""
	}
	sum := 0.0
	for _, o := range r.seats {
		if with := o.knobs.Caps(s.knobs[0].Host); o.resource == s.resource && len(o.knobs) == 1 && with != nil && with.By == st.By {
			sum += o.dial.Guarantee
		}
	}
	if sum <= st.Most+grain {
		return ""
	}
	return fmt.Sprintf("what those below it are guaranteed adds up to %s, and %s, gives %s", s.amount(sum), st.By, s.amount(st.Most))
}
