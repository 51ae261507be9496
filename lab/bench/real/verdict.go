package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/lab/services"
)

// alike is the difference, as a share, up to which two rows count as one: two runs of one policy
// differ by as much.
const alike = 0.01

// stand is a row of trimtab beside that of the kernel alone.
type stand struct {
	name, objective string
	// gain is by how much it is better than the kernel, hopeless that the oracle of its objective
	// is not either.
	gain     float64
	hopeless bool
}

// verdict says for whom trimtab is worth it, by the rows of a run: nothing without a row of the
// kernel alone, or without one of trimtab. Where the pool suffices rows are compared by the
// share of requests in time, elsewhere by what they are worth by their own objective.
func verdict(results []*result) []string {
	var fits, over []stand
	for _, r := range results {
		base := r.find(theKernel)
		if base == nil {
			continue
		}
		for _, row := range r.Rows {
			name, ok := strings.CutPrefix(row.Policy, "trimtab:")
			if !ok {
				continue
			}
			s := stand{name: r.Scenario + " " + name, objective: strings.Split(name, ":")[0], gain: row.InTime - base.InTime}
			if !r.Over {
				fits = append(fits, s)
				continue
			}
			s.gain, s.hopeless = r.against(row, base)
			over = append(over, s)
		}
	}
	if len(fits)+len(over) == 0 {
		return nil
	}
	out := []string{"", fmt.Sprintf("For whom trimtab is worth it, beside the kernel alone (one quota for all, equal weights); less than %.0f point is no difference:", 100*alike)}
	out = append(out, group("where the needs fit, by requests in time", fits)...)
	out = append(out, group("where they do not, by each objective's own measure", over)...)
	return append(out, advice(fits, over)...)
}

// find returns the row of a policy; nil: there is none.
func (r *result) find(policy string) *row {
	if i := slices.IndexFunc(r.Rows, func(row *row) bool { return row.Policy == policy }); i >= 0 {
		return r.Rows[i]
	}
	return nil
}

// against compares a row of trimtab with the kernel's by its own objective, which is njc unless
// it says otherwise, and by requests in time where the objective has no measure.
func (r *result) against(ours, base *row) (gain float64, hopeless bool) {
	objective := strings.Split(ours.Policy, ":")[1]
	if objective == "default" {
		objective = "njc"
	}
	if !slices.Contains(services.Objectives(), objective) {
		return ours.InTime - base.InTime, false
	}
	of := func(x *row) float64 { v, _ := x.Welfare.Of(objective); return v } // it is known
	if best := r.find(oraclePrefix + objective); best != nil {
		hopeless = of(best)-of(base) < alike
	}
	return of(ours) - of(base), hopeless
}

// group tells of rows that are better, alike and worse.
func group(of string, all []stand) (out []string) {
	if len(all) == 0 {
		return nil
	}
	for _, part := range []struct {
		says string
		has  func(float64) bool
	}{{"better than the kernel alone", won}, {"no better and no worse", func(g float64) bool { return !won(g) && !lost(g) }}, {"worse than the kernel alone", lost}} {
		var names []string
		for _, s := range all {
			if !part.has(s.gain) {
				continue
			}
			name := fmt.Sprintf("%s %+.1f", s.name, 100*s.gain)
			if s.hopeless {
				name += " (nor is one who knows everything better)"
			}
			names = append(names, name)
		}
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("  %s, %s: %s", of, part.says, strings.Join(names, ", ")))
		}
	}
	return out
}

// advice is what to make of it.
func advice(fits, over []stand) (out []string) {
	wins, losses := tally(fits)
	switch {
	case len(fits) == 0:
	case wins > losses:
		out = append(out, fmt.Sprintf("Where the needs fit, trimtab is worth it in %d of %d rows.", wins, len(fits)))
	case losses > 0:
		out = append(out, fmt.Sprintf("Where the needs fit, take the kernel alone: trimtab is worse in %d of %d rows, and better in %d.", losses, len(fits), wins))
	default:
		out = append(out, "Where the needs fit, the kernel alone is as good, and is all that you need.")
	}
	var worth, not []string
	seen := map[string]bool{}
	for _, s := range over {
		if seen[s.objective] {
			continue
		}
		seen[s.objective] = true
		same := slices.DeleteFunc(slices.Clone(over), func(o stand) bool { return o.objective != s.objective })
		wins, losses := tally(same)
		said := fmt.Sprintf("%s (better in %d of %d rows, worse in %d)", s.objective, wins, len(same), losses)
		if wins > losses {
			worth = append(worth, said)
		} else {
			not = append(not, said)
		}
	}
	if len(worth) > 0 {
		out = append(out, "Where they do not, trimtab is worth it with "+strings.Join(worth, ", ")+".")
	}
	if len(not) > 0 {
		out = append(out, "Where they do not, trimtab is not worth it with "+strings.Join(not, ", ")+".")
	}
	return out
}

// tally counts rows that are better and worse.
func tally(all []stand) (wins, losses int) {
	for _, s := range all {
		if won(s.gain) {
			wins++
		}
		if lost(s.gain) {
			losses++
		}
	}
	return wins, losses
}

func won(gain float64) bool  { return gain >= alike }
func lost(gain float64) bool { return gain <= -alike }
