//go:build integration

package demo

import (
	"testing"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/process"
)

// knobsOf opens the knobs of a setup as a pipeline would.
func knobsOf(t *testing.T, s *Setup) turned {
	t.Helper()
	out := turned{}
	for _, svc := range s.Services {
		var err error
		if s.Knob == KnobCgroup {
			out[svc.Name], err = cgroup.Open(cgroup.Config{Root: s.Root, Path: svc.Handle})
		} else {
			out[svc.Name], err = process.Open(process.Config{Root: s.Root, Dir: svc.Handle})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = out.close() })
	return out
}
