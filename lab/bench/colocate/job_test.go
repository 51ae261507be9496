package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/jobs"
)

func TestAWorkerGoesOnFromItsLastCheckpointAndTellsTrimtabHowFarItIs(t *testing.T) {
	dir := t.TempDir()
	if err := write(filepath.Join(dir, savedFile), state{Done: 500, Saved: 400}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	w := worker{Dir: dir, Size: 1 << 20, Every: 50 * time.Millisecond}
	if err := w.run(ctx); err != nil {
		t.Fatal(err)
	}
	var s state
	if err := read(filepath.Join(dir, doneFile), &s); err != nil || s.Done <= 400 || s.Saved > s.Done {
		t.Errorf("%+v, %v", s, err)
	}
	r, err := (jobs.Source{Name: filepath.Join(dir, progressFile)}).Read()
	if err != nil || r.Step == nil || *r.Step <= 400 || *r.Steps != steps || r.Saved == nil || *r.Saved > *r.Step {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTheTableComparesEachPolicyWithHeracles(t *testing.T) {
	r := &result{About: about{Machine: "2 CPUs", Load: "a day", Factor: 4, Alone: solo{SLO: 20, Max: 400, P99: 5}}}
	for n := range 2 {
		for i, p := range []string{alone, "heracles", "rhythm"} {
			be := float64(i) * (0.2 + 0.02*float64(n))
			r.Rows = append(r.Rows, &row{Policy: p, Repeat: n + 1, Load: 0.5, BE: be, EMU: 0.5 + be, Held: 1, InTime: 1})
		}
	}
	var out strings.Builder
	if err := r.text(&out, []string{"rhythm", alone, "heracles"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"SLO: 99% within 20.0 ms, 4 x the p99 alone at half load",
		"rhythm    0.92 (0.90-0.94)  0.42 (0.40-0.44)  2.00",
		"heracles  0.71 (0.70-0.72)  0.21 (0.20-0.22)  1.00",
		"none      0.50 (0.50-0.50)  0.00 (0.00-0.00)  -",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestABusyMachineIsSaid(t *testing.T) {
	r := &result{Rows: []*row{{Policy: alone, Others: 0.04}}}
	var calm, disturbed strings.Builder
	r.remarks(&calm)
	r.Rows = append(r.Rows, &row{Policy: theKernel, Others: 0.5})
	r.remarks(&disturbed)
	if strings.Contains(calm.String(), "Others") || !strings.Contains(disturbed.String(), "Others used up to 50% of the machine") {
		t.Errorf("%s%s", calm.String(), disturbed.String())
	}
}
