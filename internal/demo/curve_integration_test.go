//go:build integration

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
)

// TestTheSLOFractionRisesWithTheQuota plays a steady load under growing quotas
// of a real control group. The ends of the curve are asserted, far apart; what
// lies between is printed.
func TestTheSLOFractionRisesWithTheQuota(t *testing.T) {
	launcher := &Launcher{Self: self(t), Stderr: os.Stderr}
	place, err := openCgroup(launcher)
	if err != nil {
		t.Skipf("no writable cgroup hierarchy: %v", err)
	}
	defer func() {
		if err := place.Close(); err != nil {
			t.Error(err)
		}
	}()
	setup, err := NewSetup(Machine{CPUs: 2, Free: 2, Speed: referenceSpeed}, KnobCgroup, 3)
	if err != nil {
		t.Fatal(err)
	}
	_, setup.OTLP = openSink(t, "127.0.0.1:0")
	var free addresses
	defer func() {
		if err := free.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := setup.address(&free); err != nil {
		t.Fatal(err)
	}
	for i, s := range setup.Services {
		if err := place.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var attained []float64
		for _, share := range []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2} {
			rate := s.Day.Peak * 0.7
			cores := share * 0.7 * kinds(KnobCgroup)[i].peak * setup.Capacity
			if err := place.Set(t.Context(), s, cores); err != nil {
				t.Fatal(err)
			}
			g := loadgen.Generator{For: 3 * time.Second, Seed: 9, Targets: []loadgen.Target{{Name: s.Name, URL: s.URL(),
				Day: loadgen.Day{Base: rate, Peak: rate, Width: 0.5}, Latency: s.SLO.Latency}}}
			totals, err := g.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, _ := totals[0].Attained()
			p95, _ := totals[0].Latency.Quantile(0.95)
			t.Logf("%-7s %5.1f/s with %.3f cores (%3.0f%% of its work): %5.1f%% within %v, p95 %4.0f ms", s.Name, rate, cores, share*100, p*100, s.SLO.Latency, p95*1e3)
			attained = append(attained, p)
		}
		if first, last := attained[0], attained[len(attained)-1]; last < first+0.3 {
			t.Errorf("%s: %.2f with a quarter of the CPU that its work takes, %.2f with twice as much", s.Name, first, last)
		}
	}
}

func TestWhatAKilledDemoLeftIsSweptByTheNext(t *testing.T) {
	place, err := openCgroup(&Launcher{})
	if err != nil {
		t.Skipf("no writable cgroup hierarchy: %v", err)
	}
	// No process has an id above the kernel's limit of 2^22.
	old, err := cgroup.Create(place.Root(), groupPrefix+"4194305-shop")
	if err != nil {
		t.Fatal(err)
	}
	own, err := cgroup.Create(place.Root(), fmt.Sprintf("%s%d-probe", groupPrefix, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	sweep(place.Root())
	if _, err := os.Stat(filepath.Join(place.Root(), old.Path())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old group: %v", err)
	}
	if _, err := os.Stat(filepath.Join(place.Root(), own.Path())); err != nil {
		t.Errorf("the group of a living process: %v", err)
	}
}
