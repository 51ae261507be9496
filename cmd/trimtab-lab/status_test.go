package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestABenchTellsHowLongTheRestOfAStepTakes(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now().Add(-time.Minute)
	s := statusLine{out: &out, begun: begun}
	s.say("solving, 1 of 5")
	s.since, s.last = s.since.Add(-20*time.Second), begun
	s.say("solving, 3 of 5")
	if got := out.String(); !strings.Contains(got, "solving, 1 of 5 (60 s)") || !strings.Contains(got, "solving, 3 of 5 (60 s, about 20 s left of this)") {
		t.Errorf("%q", got)
	}
}
