package main

import (
	"fmt"
	"math"
	"time"
)

// What is asked of trimtab.
const (
	// lessThanUntouched and lessThanVPA are parts of the memory given.
	lessThanUntouched, lessThanVPA = 0.25, 0.15
	// offBy is how far the need may be from the sweep.
	offBy = 0.10
	// raisedWithin is the time from pressure to a larger limit.
	raisedWithin = 2 * time.Second
	// slower is how much longer the p99 may be than untouched, and countless the difference in time that
	// does not count.
	slower, countless = 1.10, 5 * time.Millisecond
)

// verdict says for each figure that is asked whether this run has it, and which row gave least at no
// more kills than untouched.
func (r *result) verdict() (out []string) {
	say := func(good bool, format string, args ...any) {
		mark := map[bool]string{true: "reached", false: "NOT reached"}[good]
		out = append(out, fmt.Sprintf("%-12s %s", mark, fmt.Sprintf(format, args...)))
	}
	rows := map[string]*row{}
	for i := range r.Rows {
		rows[r.Rows[i].Name] = &r.Rows[i]
	}
	ours, untouched, other := rows[rowTrimtab].sum(), rows[rowUntouched].sum(), rows[rowVPA].sum()
	less := func(f figures) float64 { return 1 - ours.Given/f.Given }
	atSLO := ours.InTime >= min(missed, untouched.InTime)
	say(less(untouched) >= lessThanUntouched && ours.Kills <= untouched.Kills && atSLO, "memory given: %s than untouched, asked %.0f%% at the SLO; least in time %.1f%%, untouched %.1f%%; %.0f kills, %.0f untouched", lessOrMore(less(untouched)), 100*lessThanUntouched, 100*ours.InTime, 100*untouched.InTime, ours.Kills, untouched.Kills)
	say(less(other) >= lessThanVPA && ours.Kills <= other.Kills, "memory given: %s than VPA, asked %.0f%%; %.0f kills, VPA %.0f", lessOrMore(less(other)), 100*lessThanVPA, ours.Kills, other.Kills)
	theirs, replayed := r.replays()
	say(replayed.Given <= theirs.Given*(1-lessThanVPA) && replayed.Overruns <= theirs.Overruns, "memory in the replay: %s than VPA, asked %.0f%%; %d overruns, VPA %d", lessOrMore(1-replayed.Given/theirs.Given), 100*lessThanVPA, replayed.Overruns, theirs.Overruns)
	worst, at := 0.0, ""
	for i, f := range rows[rowTrimtab].Services {
		before := rows[rowUntouched].Services[i]
		if longer := f.P99 / before.P99; longer > worst && f.P99-before.P99 > countless.Seconds() {
			worst, at = longer, r.services[i].name
		}
	}
	if at == "" {
		say(true, "p99: within %v of untouched for every service", countless)
	} else {
		say(worst <= slower, "p99: at worst %.2f times that of untouched (%s), asked %.2f", worst, at, slower)
	}
	for i, f := range r.Sweep {
		off := f.Need/f.Least - 1
		say(math.Abs(off) <= offBy, "working set of %s: %+.0f%% from the sweep, asked %.0f%%", r.services[i].name, 100*off, 100*offBy)
	}
	out = append(out, r.ofTrials()...)
	best := rowUntouched
	for _, name := range []string{rowThumb, rowVPA, rowTrimtab} {
		if f := rows[name].sum(); f.Kills <= untouched.Kills && f.Given < rows[best].sum().Given {
			best = name
		}
	}
	return append(out, fmt.Sprintf("least memory at no more kills than untouched: %s (%.0f MiB; without a limit the services use %.0f MiB)", best, rows[best].sum().Given/mib, rows[rowKernel].sum().Given/mib))
}

func lessOrMore(part float64) string {
	if part < 0 {
		return fmt.Sprintf("%.0f%% more", -100*part)
	}
	return fmt.Sprintf("%.0f%% less", 100*part)
}

// ofTrials says how the trials went.
func (r *result) ofTrials() (out []string) {
	if len(r.Trials) == 0 {
		return nil
	}
	kills, late, longest := 0.0, 0, time.Duration(0)
	known, killed := 0, 0.0
	for _, t := range r.Trials {
		kills += t.Kills
		if t.To <= highest {
			known, killed = known+1, killed+t.Kills
		}
		longest = max(longest, t.Pressed)
		if t.Short && (t.Raised == 0 || t.Pressed > raisedWithin) {
			late++
		}
	}
	mark := func(good bool) string { return map[bool]string{true: "reached", false: "NOT reached"}[good] }
	return []string{
		fmt.Sprintf("%-12s %.0f kills in %d trials, asked 0 in 200; %.0f in the %d with a load not above the highest of the days", mark(kills == 0), kills, len(r.Trials), killed, known),
		fmt.Sprintf("%-12s from pressure to a larger limit: at most %.2f s, asked %v; later, or never, in %d trials", mark(late == 0), longest.Seconds(), raisedWithin, late),
	}
}
