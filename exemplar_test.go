package trimtab_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/trimtab/trimtab"
)

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
