package beside

import (
	"fmt"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/planner/colocate"
)

// unmetOf says which controls of a job do not take effect, and what is done instead; "": all do, or
// the mode is not act.
func unmetOf(mode trimtab.Mode, knobs map[string]*trimtab.KnobState) string {
	if mode != trimtab.Act {
		return ""
	}
	unlimited, unfrozen := unusable(knobs[trimtab.CPU]), unusable(knobs[running])
	switch {
	case unlimited == "" && unfrozen == "":
		return ""
	case unlimited == "":
		held := "it has no quota yet"
		if v := knobs[trimtab.CPU].InForce(); !v.Unlimited {
			held = "it is held by its quota alone, " + view.Sized(v.Value, trimtab.CPU)
		}
		return "it cannot be frozen: " + held + " (" + unfrozen + ")"
	case unfrozen == "":
		return "its CPU time cannot be limited: it is kept frozen (" + unlimited + ")"
	case knobs[trimtab.CPU] != nil && strings.Contains(unlimited, "no such file"):
		return "" // the job does not exist
	}
	return "nothing holds it: its CPU time cannot be limited, and it cannot be frozen (" + unlimited + ")"
}

// unusable returns why trimtab cannot change a knob; "": it can.
func unusable(k *trimtab.KnobState) string {
	switch {
	case k == nil:
		return "this host has no knob for it"
	case k.Problem != "":
		return k.Problem
	}
	return k.ReadOnly
}

// unmetJobs sums up the controls of all jobs that do not take effect; nil: all do.
func unmetJobs(c *view.Colocation) []trimtab.Unmet {
	first, n := (*view.Job)(nil), 0
	for i := range c.Jobs {
		if c.Jobs[i].Unmet != "" {
			if n++; first == nil {
				first = &c.Jobs[i]
			}
		}
	}
	if n == 0 {
		return nil
	}
	what := "jobs are not controlled as decided"
	if c.Last != nil && (c.Last.Verb == string(colocate.SuspendBE) || c.Last.Verb == string(colocate.StopBE)) {
		what = c.Last.Verb + " does not freeze all jobs"
	}
	return []trimtab.Unmet{{What: codes.UnmetJobs, Why: fmt.Sprintf("%s: %d of %d; %s: %s", what, n, len(c.Jobs), first.ID, first.Unmet),
		Do: "give the job a group of the same path in the hierarchies of cpu and of freezer, with all its processes in both (cgroup version 2 has one for both), that trimtab may write"}}
}
