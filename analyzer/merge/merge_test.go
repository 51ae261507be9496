package merge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestTheSlowestExemplarsAreTheSameInWhateverGroupsTheyCame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := make([]trimtab.Exemplar, rapid.IntRange(0, 12).Draw(rt, "n"))
		for i := range all {
			all[i] = trimtab.Exemplar{
				TraceID: fmt.Sprintf("%032x", rapid.IntRange(1, 8).Draw(rt, "trace")),
				SpanID:  fmt.Sprintf("%016x", rapid.IntRange(1, 3).Draw(rt, "span")),
				Latency: trimtab.Seconds(rapid.IntRange(0, 4).Draw(rt, "latency")),
			}
		}
		want := Slowest(all, nil)
		var got []trimtab.Exemplar
		for _, e := range rapid.Permutation(all).Draw(rt, "order") {
			got = Slowest(got, []trimtab.Exemplar{e})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("one by one differs from all at once (-want +got)\n%s", diff)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Latency > got[i-1].Latency {
				rt.Errorf("not the slowest first: %v", got)
			}
		}
	})
}
