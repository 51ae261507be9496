package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/internal/bench/rig"
)

// backWithin is the time within which a step is to be over for its service.
const backWithin = time.Second

// printFast prints one line for each policy, in the order of their names.
func printFast(w io.Writer, rows []*fastRow, b *bench, whole time.Duration) {
	fmt.Fprintf(w, "%s\n%.3g cores for three services, each with %.0f%% of it, %d times that for %v every %v; %v a policy, seed %d\n\n",
		rig.DescribeMachine(), b.Pool, 100*baseLoad, stepTimes, stepFor, stepEvery, whole, b.Seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "policy\tcores\tover use\tmost set, of pool\tmost used in a second, of pool\tlate\tp99\tback: median\tlongest\twithin 1 s")
	slices.SortFunc(rows, func(a, b *fastRow) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
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
		fmt.Fprintf(t, "%s\t%.3f\t%.2f\t%.2f\t%.2f\t%.2f%%\t%.0f ms\t%.1f s\t%.1f s\t%d of %d\n", r.name, r.granted, r.granted/r.used, r.sum, r.peak,
			100*r.late, float64(r.p99.Milliseconds()), median.Seconds(), longest.Seconds(), within, len(back))
	}
	_ = t.Flush() // standard output
}
