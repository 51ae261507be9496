package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWithoutATerminalALineNowAndThenTellsHowFarALongRunIs(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "runs", 4)
	p.at(1) // too soon to say anything
	p.begun, p.printed = p.begun.Add(-time.Minute), p.printed.Add(-time.Minute)
	p.at(1)
	p.at(2) // just said
	p.done()
	if got := out.String(); got != "runs: 1 of 4, about 3 min 0 s left\n" {
		t.Errorf("%q", got)
	}
	for left, want := range map[time.Duration]string{400 * time.Millisecond: "1 s", 12 * time.Second: "12 s", 95 * time.Second: "1 min 30 s", 44 * time.Minute: "44 min", 3 * time.Hour: "3.0 h"} {
		if got := roughly(left); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
	for _, part := range []float64{0, 1, -1} {
		if got := leftOf(part, time.Minute); got != "" {
			t.Errorf("%v done: %q", part, got)
		}
	}
}

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

func TestADirectoryThatCannotBeWrittenIsRefusedBeforeARunOfHours(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sim", "cilantro", "--rounds", "100000", "--seeds", "10000"}, {"sim", "colocate"}, {"sim", "rose"}, {"sim", "microservices", "--seeds", "10000"}} {
		code, out := say(t, append(args, "--plot", filepath.Join(file, "figures"))...)
		if code != exitError || !strings.Contains(out, "directory for figures") || !strings.Contains(out, "hint") {
			t.Errorf("%q: %d %s", args, code, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := plottable(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAStopIsAnErrorThatSaysWhetherAnythingWasPrinted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	if err := cutShort(ctx, 0); err != nil {
		t.Error(err)
	}
	stop()
	for n, want := range []string{"nothing was finished", "only what was finished is printed"} {
		if err := cutShort(ctx, n); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d finished: %v", n, err)
		}
	}
}
