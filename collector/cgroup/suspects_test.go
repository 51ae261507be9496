package cgroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/quantity"
)

func TestWhatWaitsIsReadOfGroupsThatMayWaitAlone(t *testing.T) {
	of := func(value float64, missing string) *trimtab.Sample {
		return &trimtab.Sample{Value: value, Missing: missing}
	}
	for name, c := range map[string]struct {
		usage, throttled, allocation *trimtab.Sample
		full, want                   bool
	}{
		"it has enough":                         {of(0.2, ""), of(0.05, ""), of(0.5, ""), false, false},
		"its limit stops it at times":           {of(0.2, ""), of(0.1, ""), of(0.5, ""), false, true},
		"it uses nearly all that it has":        {of(0.45, ""), of(0, ""), of(0.5, ""), false, true},
		"it has no limit":                       {of(3, ""), of(0, "no period elapsed"), of(0, "unlimited"), false, false},
		"it has no limit, and the host is full": {of(3, ""), of(0, "no period elapsed"), of(0, "unlimited"), true, true},
		"it hardly runs, and the host is full":  {of(0.01, ""), of(0, "no period elapsed"), of(0, "unlimited"), true, false},
		"its use is not known":                  {of(0, "first reading"), of(1, ""), of(0.5, ""), true, false},
	} {
		if got := suspects(c.usage, c.throttled, c.allocation, c.full); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// told keeps what is told of each workload, of one quantity, in each round.
type told struct {
	of    quantity.Quantity
	round map[string]*trimtab.Sample
}

func (o *told) Publish(_ context.Context, v trimtab.Value) error {
	if s := v.(*trimtab.Sample); s.Quantity == o.of {
		o.round[s.Workload] = s
	}
	return nil
}

// waiting plays rounds of groups that may wait, each with threads of those numbers, and tells how
// often something of what waits was known of each, and why it was not known last.
func waiting(t *testing.T, of quantity.Quantity, rounds int, groups map[string][]int) (known map[string]int, why map[string]string) {
	t.Helper()
	dir, proc := t.TempDir(), t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	o := &told{of: of}
	config := Config{Root: dir, Bus: o}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		threads := ""
		for _, tid := range groups[name] {
			threads += fmt.Sprintln(tid)
			put(filepath.Join(proc, fmt.Sprint(tid), "schedstat"), "1 2 3\n")
		}
		put(filepath.Join(dir, name, "cgroup.threads"), threads)
		put(filepath.Join(dir, name, "cgroup.procs"), threads)
		config.Targets = append(config.Targets, Target{Workload: name, Path: name})
	}
	c, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.waiter.threads.Proc, c.waiter.sockets.Proc = proc, proc
	known, why = map[string]int{}, map[string]string{}
	for round := range rounds {
		o.round = map[string]*trimtab.Sample{}
		for i, target := range config.Targets {
			put(filepath.Join(dir, target.Path, "cpu.stat"), fmt.Sprintf("usage_usec %d\n", 1000*round))
			c.groups[i][""].suspect = suspectFor
		}
		c.round(t.Context())
		for name, s := range o.round {
			if why[name] = s.Missing; s.Missing == "" {
				known[name]++
			}
		}
	}
	return known, why
}

// numbered are so many numbers from one on.
func numbered(from, n int) (all []int) {
	for i := range n {
		all = append(all, from+i)
	}
	return all
}

func TestAGroupWithMoreThreadsThanAreReadTakesNothingFromTheOthers(t *testing.T) {
	known, why := waiting(t, quantity.Waited, 6, map[string][]int{"a": numbered(1, 1200), "b": numbered(2001, 400), "c": numbered(3001, 400)})
	if why["a"] != many || known["b"] < 4 || known["c"] < 4 {
		t.Errorf("the large one: %q; the others were known in %v of 6 rounds, the first two of which tell nothing", why["a"], known)
	}
}

func TestAGroupOfWhichThereIsTooMuchIsLookedAtAgainAfterRounds(t *testing.T) {
	c, g, looked := &Collector{}, &group{}, 0
	for range 2*remembered + 1 {
		c.rounds++
		err := c.look(g, &g.manyThreads, func() error { looked++; return waits.ErrTooMany })
		if whyNot(err) != many {
			t.Fatalf("round %d: %v", c.rounds, err)
		}
	}
	if looked != 3 {
		t.Errorf("looked at in %d of %d rounds, want 3", looked, c.rounds)
	}
}

func TestGroupsThatAreTooManyTogetherHaveTheirTurns(t *testing.T) {
	known, why := waiting(t, quantity.Waited, 20, map[string][]int{"a": numbered(1, 900), "b": numbered(1001, 900), "c": numbered(2001, 50), "d": numbered(3001, 900)})
	for name := range why {
		if known[name] < 4 || why[name] != "" && why[name] != later {
			t.Errorf("%s was known in %d of 20 rounds, and last %q", name, known[name], why[name])
		}
	}
}

func TestAGroupWhoseProcessesCannotBeSeenDoesNotWaitForZero(t *testing.T) {
	for name, threads := range map[string][]int{"none is listed": nil, "they are in another namespace": {0, 0}} {
		for _, of := range []quantity.Quantity{quantity.Waited, quantity.Queued} {
			known, why := waiting(t, of, 4, map[string][]int{"a": threads})
			if known["a"] > 0 || why["a"] != "its processes cannot be seen from here" {
				t.Errorf("%s: %s known %v, %q", name, of, known, why)
			}
		}
	}
}

func TestTheIdleTimeOfAllCPUsIsRead(t *testing.T) {
	const all = "cpu  9 9 9 9000 900 9\n"
	for text, want := range map[string]struct {
		idle time.Duration
		cpus int
	}{
		all + "cpu0 1 2 3 4000 50 6 7 8 9 0\ncpu3 1 2 3 400 5 6\nintr 5 1 1 1 1 1\n": {44550 * time.Millisecond, 2}, // 1 and 2 are offline
		all + "cpu0 1 2 3 0 0 6\n": {0, 1}, all: {-1, 0}, "": {-1, 0}, "cpu0 1 2\n": {-1, 0}, "cpu0 1 2 3 x 0 6": {-1, 0},
		"cpu0 1 2 3 -4 0 6": {-1, 0}, "cpu0 1 2 3 99999999999999999999 0 6": {-1, 0},
	} {
		if idle, cpus := idleOf(text); idle != want.idle || cpus != want.cpus {
			t.Errorf("%q: %v of %d, want %v", text, idle, cpus, want)
		}
	}
}
