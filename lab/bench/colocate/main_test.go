package main

import (
	"flag"
	"io"
	"testing"
)

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, bad := range [][]string{
		{"-policy", "magic"}, {"-policy", "none,none"}, {"-seconds", "1"}, {"-seconds", "NaN"}, {"-repeat", "0"}, {"-slo", "10ms"}, {"-max", "5"},
		{"-limits", "0.8"}, {"-weight", "0"}, {"-o", "xml"}, {"-factor", "NaN"}, {"left"}, {"-start", "0"}, {"-step", "NaN"},
	} {
		f := flag.NewFlagSet("colocate", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		if o, err := parse(f, bad); err == nil {
			t.Errorf("%q: %+v", bad, o)
		}
	}
	f := flag.NewFlagSet("colocate", flag.ContinueOnError)
	if o, err := parse(f, []string{"-slo", "10ms", "-max", "300", "-limits", "0.9,0.1"}); err != nil || *o.Limits != [2]float64{0.9, 0.1} {
		t.Errorf("%+v, %v", o, err)
	}
}
