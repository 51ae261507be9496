package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestASimulationBeginsWithinItsTrace(t *testing.T) {
	short := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(short, []byte("t_s,qps\n0,40\n1,41\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]simCilantroCmd{
		"the built-in one has 2592000 s": {simFlags: simFlags{Rounds: 1}, Capacity: 1000, Offset: 2_592_001},
		"2 s, the run needs":             {simFlags: simFlags{Rounds: 1}, Capacity: 1000, Offset: 100_000_000, Trace: short},
		"from second 100000001":          {simFlags: simFlags{Rounds: 1}, Capacity: 1000, Offset: 100_000_001},
	} {
		if _, err := c.environment(); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := simCilantroCmd{simFlags: simFlags{Rounds: 2}, Capacity: 1000, Offset: 500}
	if e, err := c.environment(); err != nil || len(e.Trace) != 500+2*120 {
		t.Errorf("%v", err)
	}
}
