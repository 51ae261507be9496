package planner

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

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
	for i := range s.knobs {
		st := s.knobs[i].Held.Standing
		switch {
		case st == nil:
		case st.Most > 0 && st.Most <= s.knobs[i].now+grain:
			return st.By + allows(st)
		case st.Left != nil && *st.Left < s.of.Unit:
			return st.LeftBy + " leaves no more"
		}
	}
	return ""
}

func allows(st *trimtab.Standing) string {
	if st.Caps { // its name is within commas
		return ", allows no more"
	}
	return " allows no more"
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

// promised says that a group above allows less than what those below it were guaranteed; "": it
// allows that.
func (r *decision) promised(s *seat) string {
	above := func(s *seat, host string) *trimtab.Standing {
		for i := range s.knobs {
			if st := s.knobs[i].Held.Standing; st != nil && st.Caps && (host == "" || s.knobs[i].Held.Host == host) {
				return st
			}
		}
		return nil
	}
	st := above(s, "")
	if st == nil || !(s.dial.Guarantee > 0) || len(s.knobs) != 1 {
		return ""
	}
	sum := 0.0
	for _, o := range r.seats {
		if with := above(o, s.knobs[0].Held.Host); o.resource == s.resource && len(o.knobs) == 1 && with != nil && with.By == st.By {
			sum += o.dial.Guarantee
		}
	}
	if sum <= st.Most+grain {
		return ""
	}
	return fmt.Sprintf("what those below it are guaranteed adds up to %s, and %s, gives %s", s.amount(sum), st.By, s.amount(st.Most))
}
