package analyzer_test

import (
	"testing"

	"github.com/trimtab/trimtab"
)

func TestTheHoldingsOfTwoPoolsOnOneHostTakeNothingFromEachOther(t *testing.T) {
	of := func(pool string, at float64, name string) *trimtab.Holding {
		h := holding(at, name, 2, 0)
		h.Pool = pool
		return h
	}
	for name, c := range map[string]struct {
		holdings func(n int) []*trimtab.Holding
	}{
		"two pools": {func(n int) []*trimtab.Holding {
			return []*trimtab.Holding{of("p", float64(n), "w"), of("q", float64(n)+0.1, "other")}
		}},
		"before this build and since": {func(n int) []*trimtab.Holding {
			if n < 3 {
				return []*trimtab.Holding{of("", float64(n), "w")}
			}
			return []*trimtab.Holding{of("p", float64(n), "w"), of("", 2, "w")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := make1(t, config("w"))
			for n := range 6 {
				for _, h := range c.holdings(n) {
					a.Step(h.Time, h)
				}
				a.Step(sec(float64(n)+1.1), sketch("w", n, 100, 95))
				for _, e := range estimates(t, a.Step(sec(float64(n)+1.2), nil)) {
					if n > 0 && (e.Allocation == nil || *e.Allocation != 2) {
						t.Fatalf("second %d: allocation %v, want 2", n, e.Allocation)
					}
				}
			}
		})
	}
}
