package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestWithoutATerminalALineNowAndThenTellsHowFarALongRunIs(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "runs", 4)
	p.At(1) // too soon to say anything
	p.begun, p.printed = p.begun.Add(-time.Minute), p.printed.Add(-time.Minute)
	p.At(1)
	p.At(2) // just said
	p.Done()
	if got := out.String(); got != "runs: 1 of 4, about 3 min 0 s left\n" {
		t.Errorf("%q", got)
	}
	for left, want := range map[time.Duration]string{400 * time.Millisecond: "1 s", 12 * time.Second: "12 s", 95 * time.Second: "1 min 30 s", 44 * time.Minute: "44 min", 3 * time.Hour: "3.0 h"} {
		if got := roughly(left); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
	for _, part := range []float64{0, 1, -1} {
		if got := Left(part, time.Minute); got != "" {
			t.Errorf("%v done: %q", part, got)
		}
	}
}
