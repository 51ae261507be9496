package perf

import (
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// fakeCPUs are groups of counters that are not the kernel's: pipes that give what is said
// of them, in its form.
type fakeCPUs struct {
	t     *testing.T
	write [2][]*os.File
	counters
}

func newFakeCPUs(t *testing.T, cpus int) *fakeCPUs {
	t.Helper()
	f := &fakeCPUs{t: t}
	for i := range f.leaders {
		for range cpus {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close(); w.Close() })
			f.leaders[i] = append(f.leaders[i], int(r.Fd())) // blocking from here on
			f.write[i] = append(f.write[i], w)
		}
	}
	return f
}

// say is what one group on one CPU stands at now: enabled, running, counts.
func (f *fakeCPUs) say(set, cpu int, numbers ...uint64) {
	f.t.Helper()
	if _, err := f.write[set][cpu].Write(buffer(append([]uint64{uint64(len(numbers) - 2)}, numbers...)...)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeCPUs) values() map[quantity.Quantity]any {
	i := f.read([2][]event{software(), hardware()})
	out := map[quantity.Quantity]any{}
	for _, m := range values(i, false) {
		out[m.q] = m.v
		if m.missing != "" {
			out[m.q] = m.missing
		}
	}
	return out
}

func TestMultiplexedCountersOfTwoCPUsGiveRatiosOfTheWholeInterval(t *testing.T) {
	f := newFakeCPUs(t, 2)
	for cpu := range 2 {
		f.say(0, cpu, 50, 50, 50, 0, 0, 0)
		f.say(1, cpu, 50, 25, 1000, 1000, 10, 20)
	}
	if got := f.values(); got[quantity.CPI] != poll.First || got[quantity.PageFaults] != poll.First {
		t.Errorf("at first: %v", got)
	}
	f.at = hostfs.BootTime() - 2*time.Second
	// The first CPU counts half of the time, the second always: 6,000 + 2,000 cycles of
	// 2,000 + 2,000 instructions, 40 + 10 misses of 80 + 20 references.
	f.say(0, 0, 150, 150, 150, 3, 2, 1)
	f.say(0, 1, 150, 150, 150, 3, 2, 1)
	f.say(1, 0, 150, 75, 4000, 2000, 30, 60)
	f.say(1, 1, 150, 125, 3000, 3000, 20, 40)
	got := f.values()
	if got[quantity.CPI] != 2.0 || got[quantity.MPKI] != 12.5 || got[quantity.RPKI] != 25.0 {
		t.Errorf("%v", got)
	}
	if faults, ok := got[quantity.PageFaults].(float64); !ok || faults > 2 || faults <= 0 {
		t.Errorf("4 faults in 2 s or more: %v", got)
	}
	// A CPU went: nothing can be read of it.
	if err := f.write[1][1].Close(); err != nil {
		t.Fatal(err)
	}
	for cpu := range 2 {
		f.say(0, cpu, 250, 250, 250, 4, 4, 4)
	}
	f.say(1, 0, 250, 175, 9000, 9000, 90, 90)
	if got := f.values(); got[quantity.CPI] != poll.Unreadable || got[quantity.ContextSwitches] == poll.Unreadable {
		t.Errorf("without a CPU: %v", got)
	}
}
