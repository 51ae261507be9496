package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// alike is the difference of goodput up to which two rows count as one: two runs of one row
// differ by as much.
const alike = 0.03

// verdict says which row is best for whom, by the rows of a run: for those who want most in
// time, for those whose critical requests must be, and for those who cannot run a proxy.
func verdict(all []*result) (out []string) {
	for _, r := range all {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(x row) bool { return x.Missing != "" })
		if len(rows) < 2 {
			continue
		}
		most := best(rows, func(x row) float64 { return x.Goodput })
		line := fmt.Sprintf("%s at %.1fx: most in time by %s (%.2f of the capacity)", r.Service, r.Load, named(most), most[0].Goodput)
		if with := slices.DeleteFunc(slices.Clone(rows), func(x row) bool { return x.Critical == nil }); len(with) > 0 {
			first := best(with, func(x row) float64 { return *x.Critical })
			line += fmt.Sprintf("; critical requests by %s (%s in time)", named(first), percent(*first[0].Critical))
		}
		out = append(out, line+"; "+without(rows, most[0])+".")
	}
	if len(out) == 0 {
		return nil
	}
	return append([]string{"", fmt.Sprintf("For whom which row is best; less than %.2f is no difference:", alike)}, out...)
}

// best returns the rows that are within alike of the highest, the highest first.
func best(rows []row, of func(row) float64) []row {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b row) int { return cmp.Compare(of(b), of(a)) })
	highest := of(out[0])
	return slices.DeleteFunc(out, func(x row) bool { return of(x) < highest-alike })
}

func named(rows []row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return strings.Join(out, ", ")
}

// without says what those have who put no proxy before their service.
func without(rows []row, most row) string {
	bare := slices.DeleteFunc(slices.Clone(rows), func(x row) bool { return x.Name != rowNothing && x.Name != rowWeights })
	if len(bare) == 0 {
		return "no row is without a proxy"
	}
	top := best(bare, func(x row) float64 { return x.Goodput })[0]
	if top.Goodput >= most.Goodput-alike {
		return "without a proxy as much, so nobody needs one at this load"
	}
	return fmt.Sprintf("without a proxy %.2f", top.Goodput)
}
