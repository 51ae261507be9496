package resctrl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/rdt"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

// cpu draws a CPU.
func cpu(r *rapid.T) rdttest.Spec {
	s := rdttest.Spec{
		Ways: rapid.IntRange(2, 20).Draw(r, "ways"), MinBits: rapid.IntRange(1, 2).Draw(r, "min_cbm_bits"),
		CDP: rapid.Bool().Draw(r, "cdp"), MBps: rapid.Bool().Draw(r, "mba_MBps"), CLOSIDs: rapid.IntRange(4, 16).Draw(r, "closids"),
		Domains: rapid.SampledFrom([][]int{{0}, {0, 1}, {2, 5, 7}}).Draw(r, "domains"),
	}
	s.Shareable = rapid.SampledFrom([]uint64{0, 1, 3, 3 << (s.Ways - 2)}).Draw(r, "shareable")
	return s
}

// masks returns what each of trimtab's groups with a limit has of the cache, by domain.
func (h *host) masks(all uint64) (out []map[int]uint64) {
	h.t.Helper()
	for _, name := range h.trimtabs() {
		text, err := h.tree.Read(name + "/schemata")
		if err != nil {
			h.t.Fatal(err)
		}
		s, err := rdt.ParseSchemata(text)
		if err != nil {
			h.t.Fatal(err)
		}
		masks := map[int]uint64{}
		for _, resource := range []string{"L3", "L3CODE", "L3DATA"} {
			if line := s.Line(resource); line != nil {
				for _, d := range line.Domains {
					masks[d.ID] |= d.Value
				}
			}
		}
		if masks[s[0].Domains[0].ID] != all {
			out = append(out, masks)
		}
	}
	return out
}

// What is asked of a host in any order: no two limited groups ever share a way, each
// knob reads what it wrote last, the default group is as it was, and in the end nothing
// is left.
func TestWhateverIsAskedWaysStayApartAndARestoreLeavesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := cpu(r)
		h := newHost(t, s)
		root, err := h.tree.Read("schemata")
		if err != nil {
			t.Fatal(err)
		}
		var knobs []actuator.Knob
		want := map[string]trimtab.Amount{}
		for i := range 4 {
			path := fmt.Sprintf("w%d", i)
			h.cgroup(path, 10*i+1, 10*i+2)
			for _, resource := range []string{trimtab.LLC, trimtab.MemBW} {
				k, err := h.kind.Open(actuator.Location{Root: h.groups, Path: path, High: i > 1}, resource)
				if err != nil {
					t.Fatal(err)
				}
				knobs = append(knobs, k)
				want[k.String()] = h.read(k)
			}
		}
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			k := knobs[rapid.IntRange(0, len(knobs)-1).Draw(r, "knob")]
			goal := trimtab.Unlimited()
			if !rapid.Bool().Draw(r, "unlimited") {
				goal = k.Nearest(trimtab.Units(float64(rapid.IntRange(1, 22).Draw(r, "amount"))))
			}
			switch err := k.Write(t.Context(), goal); {
			case err == nil:
				want[k.String()] = goal
			case !errors.Is(err, trimtab.ErrRefused):
				r.Fatalf("write %v to %s: %v", goal, k, err)
			}
			for _, k := range knobs {
				if got := h.read(k); got != want[k.String()] {
					r.Fatalf("%s reads %v, want %v", k, got, want[k.String()])
				}
			}
			for _, d := range s.Domains {
				taken := uint64(0)
				for _, masks := range h.masks(1<<s.Ways - 1) {
					if taken&masks[d] != 0 {
						r.Fatalf("cache %d: %x is shared", d, taken&masks[d])
					}
					taken |= masks[d]
				}
			}
		}
		for _, k := range slices.Backward(knobs) {
			if err := k.Write(t.Context(), trimtab.Unlimited()); err != nil {
				r.Fatal(err)
			}
		}
		if now, err := h.tree.Read("schemata"); err != nil || now != root || len(h.trimtabs()) > 0 {
			r.Fatalf("%q are left, the default group has %q, %v", h.trimtabs(), now, err)
		}
	})
}
