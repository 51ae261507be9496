package welfare

import (
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// fall is the cost of lowering a workload in addition to the loss on its curve: the uncertainty of
// the band at its present allocation. See the package comment.
type fall struct {
	// current is its present allocation, now the worth of the mean there, doubt the width of the
	// band there, in steps.
	current    int
	now, doubt int64
	mean       utility
	// close is the least allocation at which lowering costs less than doubt.
	close int
}

// at returns the cost of lowering to k units, in steps: at most the loss that the mean predicts,
// and at most the doubt. It does not increase with k.
func (f *fall) at(k int) int64 {
	switch {
	case f == nil || k >= f.current:
		return 0
	case k < f.close:
		return f.doubt
	}
	return min(max(f.now-f.mean.value(k), 0), f.doubt)
}

// fallOf returns the cost of lowering w; nil: there is none, since the band has no width or
// optimism has not begun to decay.
func fallOf(w *policy.Workload, unit float64, how reading) *fall {
	share := settled(w.Reports) * (1 - how.optimism(w.Reports))
	if share == 0 {
		return nil
	}
	b := w.Curve.Eval(float64(w.Current) * unit)
	u := how.worth(w)
	f := &fall{current: w.Current, doubt: int64(share * float64(how.steps(u(b.Upper))-how.steps(u(b.Lower))) / 2)}
	if f.doubt <= 0 {
		return nil
	}
	f.mean, _ = utilityOf(w, unit, how.at(func(b trimtab.Band) float64 { return b.Mean }))
	f.now = f.mean.value(w.Current)
	f.close = sort.Search(w.Current, func(k int) bool { return f.now-f.mean.value(k) < f.doubt })
	return f
}
