package resctrl_test

import (
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

// What is played here are kernels and CPUs that this machine is not: rdttest answers as
// their sources do.

// Arm's MPAM keeps k/2^n. What is read back is what counts: else each limit that trimtab wrote
// would be taken for somebody else's.
func TestAPercentageOfAnArmCPUReadsBackAsTheNearestThatItKeeps(t *testing.T) {
	for bits := 1; bits <= 10; bits++ {
		h := newHost(t, rdttest.Spec{MPAM: bits})
		h.cgroup("web", 10)
		k := h.knob("web", trimtab.MemBW)
		h.read(k)
		for percent := 1.0; percent < 100; percent++ {
			want := k.Nearest(trimtab.Units(percent))
			if want.Unlimited {
				continue
			}
			h.write(k, percent)
			got := h.read(k)
			if got != want || k.Nearest(got) != got {
				t.Fatalf("%d bits: %v%% reads back as %v, nearest is %v, of that %v", bits, percent, got, want, k.Nearest(got))
			}
			h.writeAmount(k, got) // as a restore does
			if again := h.read(k); again != got {
				t.Fatalf("%d bits: %v written back is %v", bits, got, again)
			}
		}
	}
}

func TestWaysThatDevicesFillAreNotFreeWays(t *testing.T) {
	s := server()
	s.Shareable, s.IOAlloc = 0, 0x700
	h := newHost(t, s)
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 8)
	if got := h.schemata(10); got != "MB:0=100;1=100\nL3:0=ff;1=ff" && got != "MB:0=100;1=100\nL3:0=0ff;1=0ff" {
		t.Errorf("%q", got)
	}
	h.cgroup("batch", 20)
	h.refused(h.knob("batch", trimtab.LLC).Write(t.Context(), trimtab.Units(1)), "trimtab may give out 8 of 11")
	s.IOAlloc = 0x7ff // as it begins: shared with everybody
	h = newHost(t, s)
	h.cgroup("web", 10)
	h.write(h.knob("web", trimtab.LLC), 10)
}

func TestEachCauseOfNoSpaceIsNamed(t *testing.T) {
	s := server()
	s.RMIDs = 2
	h := newHost(t, s)
	h.cgroup("web", 10)
	h.cgroup("batch", 20)
	h.write(h.knob("web", trimtab.LLC), 2)
	h.refused(h.knob("batch", trimtab.LLC).Write(t.Context(), trimtab.Units(2)), "no monitor (RMID) left", "mon_groups", "last_cmd_status: Out of RMIDs")
}
