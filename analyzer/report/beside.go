package report

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// Partly is the note of a sum over only some instances, because the others have no sample of the
// same time.
const Partly = "of some instances alone"

// besideUsage returns the quantities that are added up together with usage samples of the same
// times.
func besideUsage() []quantity.Quantity {
	return []quantity.Quantity{quantity.Throttled, quantity.Waited, quantity.Queued}
}

// beside adds up a quantity over the instances that have a sample at the time of their usage
// sample; nil: none has.
func (j *Join) beside(q quantity.Quantity, usage []*trimtab.Sample) (out *trimtab.Sample) {
	v := j.of[q]
	if v == nil {
		return nil
	}
	part := false
	for _, s := range usage {
		t := v.latest[idOf(s)]
		switch {
		case t != nil && t.missingAt.Equal(s.Time): // a quota without any period counted has stopped nothing
			part = q != quantity.Throttled
		case t == nil || t.sample == nil || !t.sample.Time.Equal(s.Time):
		case out == nil:
			out = &trimtab.Sample{Workload: s.Workload, Quantity: q, Source: t.sample.Source, Value: t.sample.Value}
		case q == quantity.Throttled:
			out.Value = max(out.Value, t.sample.Value)
		default:
			out.Value = min(out.Value+t.sample.Value, math.MaxFloat64)
		}
	}
	if part && out != nil {
		out.Note = Partly
	}
	return out
}
