package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/site"
)

func TestARecordingBeginsAndEndsWithAReloadAndDisturbsNoStage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	count := func(name string, labels ...string) float64 {
		return testutil.ToFloat64(s.Metrics().Counter(name, labels...))
	}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	wait := func(name string, labels ...string) {
		for before := count(name, labels...); count(name, labels...) <= before; {
			select {
			case <-poll.C:
			case <-ctx.Done():
				t.Fatalf("%s does not grow", name)
			}
		}
	}
	wait("trimtab_stage_inputs_total", "planner", "holding") // the step has been called
	on := *cfg
	on.Exporters.Record.Path = t.TempDir()
	if err := s.Apply(ctx, &on); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"planner", "learn"} {
		// An input counts before its step: with the second the first is recorded.
		wait("trimtab_stage_inputs_total", stage, "holding")
		wait("trimtab_stage_inputs_total", stage, "holding")
	}
	wait("trimtab_record_lines_total")
	if err := s.Apply(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	in, err := record.Open(on.Exporters.Record.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	begins := map[string]int{}
	for {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Role == record.Begin {
			begins[l.Stage]++
			if l.Fresh {
				t.Errorf("%s was started anew", l.Stage)
			}
		}
	}
	if begins["planner"] != 1 || begins["learn"] != 1 || in.Counts().Damaged != 0 {
		t.Errorf("begins %v, %+v", begins, in.Counts())
	}
}
