package trimtab_test

import (
	"errors"
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
		want := trimtab.SlowestExemplars(all, nil)
		var got []trimtab.Exemplar
		for _, e := range rapid.Permutation(all).Draw(rt, "order") {
			got = trimtab.SlowestExemplars(got, []trimtab.Exemplar{e})
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

func TestAnExemplarWithoutAUsableIdIsRefused(t *testing.T) {
	good := trimtab.Exemplar{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331", Latency: 0.3}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*trimtab.Exemplar){
		"zero trace":       func(e *trimtab.Exemplar) { e.TraceID = fmt.Sprintf("%032x", 0) },
		"zero span":        func(e *trimtab.Exemplar) { e.SpanID = fmt.Sprintf("%016x", 0) },
		"upper case":       func(e *trimtab.Exemplar) { e.TraceID = "0AF7651916CD43DD8448EB211C80319C" },
		"short":            func(e *trimtab.Exemplar) { e.TraceID = e.TraceID[2:] },
		"markup":           func(e *trimtab.Exemplar) { e.TraceID = "<script>alert(1)</script>1234567" },
		"negative latency": func(e *trimtab.Exemplar) { e.Latency = -1 },
	} {
		e := good
		change(&e)
		if err := e.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
