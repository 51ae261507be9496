package analyzer

import (
	"cmp"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
)

// interval gathers what was measured in one report's interval: number n
// covers [n Report, (n+1) Report) since 1970.
type interval struct {
	number   int64
	sketches report.Sketches
	// performance is the latest sample of it, nil: none.
	performance *trimtab.Sample
	// proxy is the latest sample of what stands for it, nil: none.
	proxy *trimtab.Sample
	// load tells that a load sample fell into it.
	load bool
	// arrived is the first tick after the last arrival; stirred tells that
	// something came since the last tick.
	arrived time.Time
	stirred bool
}

// newer reports whether sample a replaces b: the later one; of equal times an
// arbitrary but fixed one.
func newer(a, b *trimtab.Sample) bool {
	return b == nil || cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Requests, b.Requests)) > 0
}
