package actuator

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/arbiter"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
)

// noParent starts the message that nothing is moved because the parent group cannot be used.
const noParent = "the group above cannot be set: "

// ParentRemedy returns what to do if the parent group of the fast loop's groups cannot be set.
func ParentRemedy(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "make the group that fast.parent names, with the groups of all workloads below it; or take fast.parent out"
	case errors.Is(err, os.ErrPermission):
		return "run trimtab as root, or give its user the group that fast.parent names; or take fast.parent out"
	}
	return "see what is said above; a group below it that has more than the pool's capacity, or one above it that gives less, must change first. Or take fast.parent out"
}

// MoveRemedy is what to do if a quota cannot be moved between rounds.
const MoveRemedy = "put the service's processes into a group below its unit (Delegate=yes), and name that in its knob"

// unmet lists the parts of the configuration that do not take effect here, and counts them.
func (a *Actuator) unmet() (all []trimtab.Unmet) {
	if u := a.lending.unmet(); u != nil {
		all = append(all, *u)
	}
	if a.config.Fast {
		a.metrics.Gauge("trimtab_host_unmet", a.config.Host, codes.UnmetFast).Set(float64(len(all)))
	}
	weights := 0
	if a.above.why != "" && slices.ContainsFunc(a.knobs.all, (*managed).shares) {
		weights = 1
		all = append(all, trimtab.Unmet{What: codes.UnmetWeights, Why: "CPU is not shared by weight: " + a.above.why, Do: a.above.remedy})
	}
	if slices.ContainsFunc(a.knobs.all, func(h *managed) bool { return h.can.Shared != nil }) {
		a.metrics.Gauge("trimtab_host_unmet", a.config.Host, codes.UnmetWeights).Set(float64(weights))
	}
	all = append(all, a.knobs.beside()...)
	claims := a.host.unmet()
	if a.host.arbiter != nil && a.config.Limits.Capacity != nil {
		a.metrics.Gauge("trimtab_host_unmet", a.config.Host, codes.UnmetClaims).Set(float64(len(claims)))
	}
	return append(all, claims...)
}

// beside lists what knobs leave alone beside their amounts, by the first of them.
func (ks *knobs) beside() (all []trimtab.Unmet) {
	why, n := "", 0
	for _, h := range ks.all {
		if h.Mode != trimtab.Act || h.can.Beside == nil || h.gone {
			continue
		}
		if text := h.can.Beside(); text != "" {
			why, n = cmp.Or(why, text), n+1
		}
	}
	if n == 0 {
		return nil
	}
	if n > 1 {
		why += fmt.Sprintf("; %d more are like it", n-1)
	}
	return []trimtab.Unmet{{What: codes.UnmetSoftEdge, Why: why, Do: "nothing, if that program is to decide; else let it set max there"}}
}

// unmet returns why quotas are not moved between rounds; nil: they are, or are not meant to be.
func (l *lending) unmet() *trimtab.Unmet {
	if !l.config.Fast {
		return nil
	}
	if l.problem != "" {
		return &trimtab.Unmet{What: codes.UnmetFast, Why: "no quota moves between rounds: " + l.problem, Do: l.remedy}
	}
	first, n := (*managed)(nil), 0
	for _, h := range l.knobs.all {
		if h.loan.off != "" && !h.moves() {
			if n++; first == nil {
				first = h
			}
		}
	}
	if n == 0 {
		return nil
	}
	who := first.Workload
	if n > 1 {
		who += fmt.Sprintf(" and %d more", n-1)
	}
	return &trimtab.Unmet{What: codes.UnmetFast, Why: fmt.Sprintf("the quota of %s does not move between rounds: %s", who, first.loan.off),
		Do: MoveRemedy}
}

// claimed describes the claims of other pools on a resource of this host.
type claimed struct {
	resource string
	// has is the capacity that this pool could have alone; left is what the other pools leave.
	has, left float64
	who       []arbiter.Share
}

// mostClaimants is the largest number of other pools that are named.
const mostClaimants = 5

// unmet lists the resources of which other pools' claims leave this pool less than plans need, with
// the pools.
func (hs *host) unmet() (all []trimtab.Unmet) {
	for _, c := range hs.claimed {
		var who []string
		advice := "if that is not wanted, give the other pool less, or stop its trimtab; a claim ends when its limits are restored"
		for _, s := range c.who[:min(len(c.who), mostClaimants)] {
			if s.Pool == colocation.JobsPool(hs.config.Pool) {
				who = append(who, fmt.Sprintf("best-effort jobs beside it claim up to %s", sized(s.May, c.resource)))
				advice = fmt.Sprintf("beside: {jobs: {capacity: {%s: …}}} bounds what best-effort jobs may take", c.resource)
				continue
			}
			if s.Group != "" {
				who = append(who, fmt.Sprintf("granted tasks of pool %s claim up to %s", s.Pool, sized(s.May, c.resource)))
				advice = "beside: {tasks: {regular: …}} bounds what tasks with a grant may have"
				continue
			}
			who = append(who, fmt.Sprintf("pool %s (process %d) claims up to %s", s.Pool, s.PID, sized(s.May, c.resource)))
		}
		if more := len(c.who) - len(who); more > 0 {
			who = append(who, fmt.Sprintf("and %d more", more))
		}
		all = append(all, trimtab.Unmet{What: codes.UnmetClaims,
			Why: fmt.Sprintf("the pool has %s here, not %s: %s", sized(c.left, c.resource), sized(c.has, c.resource), strings.Join(who, ", ")),
			Do:  advice})
	}
	return all
}

// sized formats an amount with its unit, rounded for people.
func sized(v float64, resource string) string {
	r := trimtab.ResourceOf(resource)
	if r.Bytes {
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	}
	unit := r.Unit
	if unit == "" {
		unit = resource
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

// sameClaims reports whether two lists look the same to people.
func sameClaims(x, y []claimed) bool {
	return slices.EqualFunc(x, y, func(a, b claimed) bool {
		return a.resource == b.resource && a.has == b.has && a.left == b.left && slices.Equal(a.who, b.who)
	})
}
