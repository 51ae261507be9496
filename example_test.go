package trimtab_test

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// watchman is a step: it counts the reports in which a workload served less than
// half of its requests in time, and raises an alert at every tick with one.
type watchman struct {
	late int
}

// Step reads no clock and does no I/O: the same calls give the same values.
func (w *watchman) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	switch v := in.(type) {
	case *trimtab.Sample:
		if p, ok := v.Get(); ok && v.Quantity == quantity.Performance && p < 0.5 {
			w.late++
		}
	case nil: // a tick
		if w.late == 0 {
			return nil
		}
		late := w.late
		w.late = 0
		return []trimtab.Value{&trimtab.Alert{
			Workload: "checkout", Name: "MostRequestsLate", Group: "example", Fingerprint: "1",
			Firing: true, Started: now, Time: now, Summary: fmt.Sprintf("%d reports with most requests late", late),
		}}
	}
	return nil
}

func ExampleStep() {
	var step trimtab.Step = &watchman{}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	sample := trimtab.Sample{Workload: "checkout", Quantity: quantity.Performance, Source: "example", Time: now, Value: 0.3}
	missing := sample
	missing.Value, missing.Missing = 0, "no answer" // missing is not 0

	step.Step(now, &sample)
	step.Step(now, &missing)
	for _, out := range step.Step(now.Add(time.Second), nil) {
		fmt.Println(out.Kind(), out.Key(), out.(*trimtab.Alert).Summary)
	}
	fmt.Println(len(step.Step(now.Add(2*time.Second), nil)), "values at the next tick")
	// Output:
	// alert checkout 1 reports with most requests late
	// 0 values at the next tick
}
