package verdict

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// most bounds the verdicts in one plan.
const most = 256

// List has the verdicts since the last plan.
type List struct{ all []trimtab.Verdict }

// Add adds a verdict for the next plan.
func (l *List) Add(v trimtab.Verdict) { l.all = append(l.all, v) }

// Drain empties the list and returns its content, at most one verdict for each move of the plan:
// unexpected ones first, then by name, independent of the order of the reports.
func (l *List) Drain() []trimtab.Verdict {
	v := l.all
	l.all = nil
	rank := func(v *trimtab.Verdict) int {
		if v.Verdict == codes.AsExpected {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v, func(a, b trimtab.Verdict) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Workload, b.Workload))
	})
	return v[:min(len(v), most)]
}
