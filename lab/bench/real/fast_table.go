package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// backWithin is the time within which a step is to be over for its service.
const backWithin = time.Second

// printFast prints one line for each policy that was played, the kernel alone first and the
// others in the order of their names, and how trimtab stands to the best setting of each rule.
func printFast(w io.Writer, rows []*fastRow, b *bench, whole time.Duration) {
	fmt.Fprintf(w, "%s\n%.3g cores for three services, each with %.0f%% of it, %d times that for %v every %v; %d x %v a policy, the first %v of each not counted; seed %d\n\n",
		rig.DescribeMachine(), b.Pool, 100*baseLoad, stepTimes, stepFor, stepEvery, b.Repeat, whole, warm, b.Seed)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *fastRow) bool { return r.sent == 0 || r.took <= 0 || r.used <= 0 })
	after := func(r *fastRow) int {
		if r.name == theKernel {
			return 0
		}
		return 1
	}
	slices.SortFunc(rows, func(a, b *fastRow) int {
		return cmp.Or(cmp.Compare(after(a), after(b)), strings.Compare(a.name, b.name))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "policy\tcores\tover use\tmost set, of pool\tmost used in a second, of pool\tlate\tp99\tback: median\tlongest\twithin 1 s")
	for _, r := range rows {
		back := slices.Clone(r.back)
		slices.Sort(back)
		median, longest, within := time.Duration(0), time.Duration(0), 0
		if n := len(back); n > 0 {
			median, longest = back[n/2], back[n-1]
		}
		for _, d := range back {
			if d <= backWithin {
				within++
			}
		}
		set := "–\t–\t–" // it sets no quotas
		if r.name != theKernel {
			set = fmt.Sprintf("%.3f\t%.2f\t%.2f", r.granted/r.took, r.granted/r.used, r.sum)
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f%%\t%.0f ms\t%.1f s\t%.1f s\t%d of %d\n", r.name, set, r.peak,
			100*float64(r.late)/float64(r.sent), quantile(r.all, 0.99), median.Seconds(), longest.Seconds(), within, len(back))
	}
	_ = t.Flush() // standard output
	fmt.Fprintln(w)
	for _, line := range compareFast(rows) {
		fmt.Fprintln(w, line)
	}
}

// compareFast says what trimtab takes over the cheapest setting of each rule that held the
// SLO, which only hindsight knows. Quotas are compared over what was used, since not all
// that came was served under each.
func compareFast(rows []*fastRow) (out []string) {
	i := slices.IndexFunc(rows, func(r *fastRow) bool { return r.name == ruleFast })
	if i < 0 {
		return nil
	}
	ours := rows[i].granted / rows[i].used
	for _, rule := range []string{ruleStatic, ruleThreshold, ruleCaptain} {
		var best *fastRow
		held := 0
		for _, r := range rows {
			if r.rule != rule {
				continue
			}
			if held++; r.holds() && (best == nil || r.granted/r.used < best.granted/best.used) {
				best = r
			}
		}
		switch {
		case held == 0:
		case best == nil:
			out = append(out, fmt.Sprintf("%s: none of its %d settings keeps late requests under 1%%", rule, held))
		default:
			line := fmt.Sprintf("trimtab takes %.2f of the cores of %s, the cheapest of %d that keep late requests under 1%%",
				ours/(best.granted/best.used), best.name, held)
			if rule == ruleThreshold {
				line += " (wanted: 0.85)"
			}
			out = append(out, line)
		}
	}
	return out
}
