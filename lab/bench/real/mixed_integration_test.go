//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/lab/services/shape"
)

// Each service whose runtime is here answers, and one that is started anew does, too.
func TestTheServicesOfScenarioMixedDoWhatTheyAreAskedFor(t *testing.T) {
	names, all := team(shape.Scenario{Mixed: true})
	for i, s := range all {
		t.Run(names[i], func(t *testing.T) {
			t.Parallel()
			r, _ := s.(*managed)
			dir := t.TempDir()
			if _, err := r.program(dir, "", ""); err != nil {
				t.Skip(err)
			}
			// Apache's user must get through to its directory.
			for _, d := range []string{dir, filepath.Dir(dir)} {
				if err := os.Chmod(d, 0o711); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(r.close)
			if err := r.start(t.Context(), nil, dir); err != nil {
				t.Fatal(err)
			}
			h := &host{services: [3]*service{{software: r}, {}, {}}}
			if err := h.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.do(t.Context(), 3); err != nil {
				t.Error(err)
			}
			if err := r.do(t.Context(), 0); err == nil {
				t.Error("no work at all counts as done")
			}
		})
	}
}
