package measured_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/measured"
)

func TestAMissIsOneBeyondTheNoiseOfItsRequests(t *testing.T) {
	for _, c := range []struct {
		performance, requests float64
		misses                bool
		words                 string
	}{{0.95, 100, false, ""}, {0.88, 100, false, "less than the noise"}, {0.8, 100, true, "by its last report"}, {0.88, 0, true, "by its last report"}} {
		e := &trimtab.Estimate{Performance: &c.performance, Requests: c.requests}
		if got := measured.Misses(e, 0.9); got != c.misses {
			t.Errorf("%v of %v requests: misses %v", c.performance, c.requests, got)
		}
		if got := measured.Late(e, 0.9); (got == "") != (c.words == "") || !strings.Contains(got, c.words) {
			t.Errorf("%v of %v requests: %q", c.performance, c.requests, got)
		}
	}
}

func TestWhatIsSaidOfANeedNeverContradictsWhatWasMeasured(t *testing.T) {
	for _, performance := range []float64{0.5, 1} {
		for k := range 16 {
			n := measured.Need{Amount: "2 cores", Unknown: k&1 > 0, More: k&2 > 0, Idle: k&4 > 0, Shared: k&8 > 0}
			got := n.Words(&trimtab.Estimate{Performance: &performance, Requests: 100}, 0.9)
			if performance < 0.9 && !n.More && strings.HasPrefix(got, "it needs") || performance > 0.9 && n.More && strings.HasPrefix(got, "it needs") {
				t.Errorf("%v in time, %+v: %q", performance, n, got)
			}
		}
	}
}
