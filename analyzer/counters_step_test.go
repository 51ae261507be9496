package analyzer_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

func TestCountersStandInTheEstimateAndTeachNothing(t *testing.T) {
	run := func(counted bool) *trimtab.Estimate {
		a := make1(t, config("a"))
		for n := range 3 {
			a.Step(sec(float64(n+1)), sketch("a", n, 100, 90))
			if counted {
				a.Step(sec(float64(n+1)), sample("a", quantity.CPI, sec(float64(n+1)), 1+float64(n)))
				a.Step(sec(float64(n+1)), sample("nobody", quantity.CPI, sec(float64(n+1)), 1))
				a.Step(sec(float64(n+1)), sample("a", quantity.Power, sec(float64(n+1)), 1))
			}
		}
		for _, v := range a.Step(sec(5), nil) {
			if e, ok := v.(*trimtab.Estimate); ok && e.Workload == "a" {
				return e
			}
		}
		t.Fatal("no estimate")
		return nil
	}
	with, without := run(true), run(false)
	if len(with.Counters) != 1 || with.Counters[0].Value != 3 || with.Counters[0].Name != "cpi" {
		t.Errorf("%+v", with.Counters)
	}
	with.Counters = nil
	if diff := cmp.Diff(without, with, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Error(diff)
	}
}
