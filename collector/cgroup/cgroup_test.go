package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// values maps quantity to value, or to the reason why there is none.
func values(samples []*trimtab.Sample) map[quantity.Quantity]any {
	m := map[quantity.Quantity]any{}
	for _, s := range samples {
		m[s.Quantity] = s.Value
		if s.Missing != "" {
			m[s.Quantity] = s.Missing
		}
	}
	return m
}

func TestUsageThrottlingAndAllocationAreDifferencesOverTheWindow(t *testing.T) {
	quota := hostfs.Quota{Micros: 150000, Period: 100000}
	before := &cgroup.Reading{At: 10 * time.Second, Used: 100 * time.Second, Periods: 50, Throttled: 5, Quota: quota}
	after := &cgroup.Reading{At: 14 * time.Second, Used: 106 * time.Second, Periods: 90, Throttled: 15, Quota: quota}
	want := map[quantity.Quantity]any{quantity.Usage: 1.5, quantity.Throttled: 0.25, quantity.Allocation: 1.5}
	got := cgroup.Samples("w", noon(), before, after, nil)
	if diff := cmp.Diff(want, values(got)); diff != "" {
		t.Error(diff)
	}
	if got[0].Window != 4 {
		t.Errorf("window %v, want 4", got[0].Window)
	}
}

func TestWhatIsNotThereIsMissingAndNeverZero(t *testing.T) {
	none := hostfs.Quota{Micros: -1, Period: 100000}
	at := func(s int, used time.Duration, periods uint64) *cgroup.Reading {
		return &cgroup.Reading{At: time.Duration(s) * time.Second, Used: used, Periods: periods, Quota: none}
	}
	for name, c := range map[string]struct {
		before, after     *cgroup.Reading
		err               error
		usage, throttled  any
		allocationMissing string
	}{
		"first":        {nil, at(1, 5, 0), nil, "first reading", "first reading", "unlimited"},
		"reset usage":  {at(1, 5, 0), at(2, 4, 0), nil, "counter reset", "counter reset", "unlimited"},
		"reset period": {at(1, 5, 9), at(2, 6, 8), nil, "counter reset", "counter reset", "unlimited"},
		"same instant": {at(1, 5, 0), at(1, 6, 0), nil, "counter reset", "counter reset", "unlimited"},
		"no period":    {at(1, 5, 3), at(2, 5, 3), nil, 0.0, "no period elapsed", "unlimited"},
		"gone":         {at(1, 5, 3), at(2, 0, 0), fs.ErrNotExist, "absent", "absent", "absent"},
		"unreadable":   {at(1, 5, 3), at(2, 0, 0), errors.New("EIO"), "unreadable", "unreadable", "unreadable"},
	} {
		want := map[quantity.Quantity]any{quantity.Usage: c.usage, quantity.Throttled: c.throttled, quantity.Allocation: c.allocationMissing}
		if diff := cmp.Diff(want, values(cgroup.Samples("w", noon(), c.before, c.after, c.err))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEverySampleValidates(t *testing.T) {
	reading := rapid.Custom(func(r *rapid.T) *cgroup.Reading {
		return &cgroup.Reading{
			At: time.Duration(rapid.Int64Min(0).Draw(r, "at")), Used: time.Duration(rapid.Int64Min(0).Draw(r, "used")),
			Periods: rapid.Uint64().Draw(r, "periods"), Throttled: rapid.Uint64().Draw(r, "throttled"),
			Above: rapid.Uint64().Draw(r, "periods above"), Stopped: rapid.Uint64().Draw(r, "throttled above"),
			Quota: hostfs.Quota{Micros: rapid.Int64Min(-1).Draw(r, "quota"), Period: rapid.Int64Range(1000, 1000000).Draw(r, "period")},
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		for _, s := range cgroup.Samples("w", noon(), reading.Draw(r, "before"), reading.Draw(r, "after"), nil) {
			if err := s.Validate(); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// outlet is a bus that hands samples to the test.
type outlet chan *trimtab.Sample

func (o outlet) Publish(ctx context.Context, v trimtab.Value) error {
	s, ok := v.(*trimtab.Sample)
	if !ok {
		return fmt.Errorf("published %T", v)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	select {
	case o <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run collects until the test ends and returns where samples arrive.
func run(t *testing.T, c cgroup.Config) outlet {
	t.Helper()
	o := make(outlet)
	c.Bus, c.Interval = o, 20*time.Millisecond
	collector, err := cgroup.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- collector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, collector.Close()); err != nil {
			t.Error(err)
		}
	})
	return o
}

// until returns the first sample that fits.
func (o outlet) until(t *testing.T, fits func(s *trimtab.Sample) bool) *trimtab.Sample {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case s := <-o:
			if fits(s) {
				return s
			}
		case <-deadline:
			t.Fatal("no such sample")
		}
	}
}

// put replaces a file in one step, as the kernel does: a half that is read
// would count as unreadable, and what was known of the counters be forgotten.
func put(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name+".new", []byte(content), 0o644), os.Rename(name+".new", name)); err != nil {
		t.Fatal(err)
	}
}

func TestAVersion2GroupComesGoesAndComesAgain(t *testing.T) {
	root := t.TempDir()
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Path: "a/b"}}})
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "absent" })
	put(t, "200000 100000\n", root, "a/b/cpu.max")
	put(t, "usage_usec 1000\nuser_usec 1\nnr_periods 0\nnr_throttled 0\n", root, "a/b/cpu.stat")
	s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Allocation && s.Missing == "" })
	if s.Value != 2 {
		t.Errorf("allocation %v, want 2", s.Value)
	}
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "" && s.Value == 0 })
	put(t, "usage_usec 900\nnr_periods 0\nnr_throttled 0\n", root, "a/b/cpu.stat")
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "counter reset" })
	put(t, "nonsense", root, "a/b/cpu.stat")
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "unreadable" })
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "absent" })
}

func TestSamplesOfAPatternNameHostAndInstanceAndFollowWhatComesAndGoes(t *testing.T) {
	root := t.TempDir()
	stat := func(name string, used int) {
		put(t, "100000 100000\n", root, "shop/web@"+name+".service/cpu.max")
		put(t, fmt.Sprintf("usage_usec %d\nnr_periods 0\nnr_throttled 0\n", used), root, "shop/web@"+name+".service/cpu.stat")
	}
	stat("a", 1000)
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Host: "h1", Path: "shop/web@*.service"}}})
	of := func(instance string, fits func(s *trimtab.Sample) bool) {
		t.Helper()
		o.until(t, func(s *trimtab.Sample) bool {
			waits := s.Quantity == quantity.Waited || s.Quantity == quantity.Queued // while this host is full
			if s.Workload != "w" || s.Host != "h1" || s.Source != cgroup.Source && !waits {
				t.Fatalf("%+v", s)
			}
			return s.Instance == instance && s.Quantity == quantity.Usage && fits(s)
		})
	}
	read := func(s *trimtab.Sample) bool { return s.Missing == "" && s.Value == 0 }
	of("a", read)
	stat("b", 5000)
	of("b", read)
	if err := os.RemoveAll(filepath.Join(root, "shop/web@a.service")); err != nil {
		t.Fatal(err)
	}
	of("a", func(s *trimtab.Sample) bool { return s.Missing == "absent" })
	// Then nothing more is said of it, until it comes again.
	for range 2 {
		of("b", read)
		of("b", func(s *trimtab.Sample) bool {
			if s.Instance == "a" {
				t.Errorf("%+v", s)
			}
			return true
		})
	}
	stat("a", 10)
	of("a", func(s *trimtab.Sample) bool { return s.Missing == "first reading" })
	of("a", read)
}

func TestAPatternThatMatchesNothingSaysNothing(t *testing.T) {
	root := t.TempDir()
	put(t, "100000 100000\n", root, "plain/cpu.max")
	put(t, "usage_usec 1\nnr_periods 0\nnr_throttled 0\n", root, "plain/cpu.stat")
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "none", Host: "h", Path: "shop/web@*.service"}, {Workload: "w", Path: "plain"}}})
	for range 9 {
		if s := <-o; s.Workload != "w" || s.Host != "" || s.Instance != "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestInstancesNeedAHost(t *testing.T) {
	if _, err := cgroup.Open(cgroup.Config{Root: t.TempDir(), Bus: make(outlet), Targets: []cgroup.Target{{Workload: "w", Path: "a*"}}}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestAVersion1GroupIsReadFromBothHierarchies(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "cpu")
	put(t, "-1\n", root, "a/cpu.cfs_quota_us")
	put(t, "100000\n", root, "a/cpu.cfs_period_us")
	put(t, "nr_periods 10\nnr_throttled 2\nthrottled_time 3\n", root, "a/cpu.stat")
	put(t, "123456789\n", base, "cpuacct/a/cpuacct.usage")
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Path: "a"}}})
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "" })
	put(t, "nr_periods 20\nnr_throttled 7\nthrottled_time 3\n", root, "a/cpu.stat")
	s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Throttled && s.Missing == "" })
	if s.Value != 0.5 {
		t.Errorf("throttled %v, want 0.5", s.Value)
	}
}

// The root group of this machine has used CPU time, and goes on using it.
func TestRealCPUTimeIsRead(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err == nil {
		_, err = os.Stat(filepath.Join(root, "cpu.stat"))
	}
	if err != nil {
		skip(t, "the root group cannot be read: %v", err)
	}
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "host", Path: "."}}})
	s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "" && s.Value > 0 })
	t.Logf("this host uses %.2f cores", s.Value)
}

// skip skips the test; in the guest of `make guest`, which has what tests of
// real groups need, it fails.
func skip(t *testing.T, format string, why ...any) {
	t.Helper()
	if os.Getenv("TRIMTAB_GUEST") != "" {
		t.Fatalf(format, why...)
	}
	t.Skipf(format, why...)
}

// makeGroup makes a real group with a tenth of a core, for the process too if
// there is one, in the hierarchies that limit and that account.
func makeGroup(t *testing.T, root, name string, process *os.Process) {
	t.Helper()
	for i, root := range []string{root, hostfs.Accounting(root)} {
		if root == "" {
			continue
		}
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			skip(t, "no group can be made: %v", err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		file, quota := "cpu.max", "10000 100000"
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			file, quota = "cpu.cfs_quota_us", "10000"
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(quota), 0); err != nil && i == 0 {
			skip(t, "the group has no quota: %v", err)
		}
		if process != nil {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// removeGroup removes it, once its processes have ended.
func removeGroup(t *testing.T, root, name string) {
	t.Helper()
	for _, root := range []string{root, hostfs.Accounting(root)} {
		dir := filepath.Join(root, name)
		deadline := time.Now().Add(time.Minute)
		for err := os.Remove(dir); root != "" && err != nil; err = os.Remove(dir) {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			<-time.After(5 * time.Millisecond)
		}
	}
}

func TestARealGroupComesIsThrottledGoesAndComesAgain(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		skip(t, "no cpu hierarchy: %v", err)
	}
	name := fmt.Sprintf("trimtab-collect-%d", os.Getpid())
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Path: name}}})
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "absent" })
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { busy.Process.Kill(); busy.Wait() })
	defer end()
	makeGroup(t, root, name, busy.Process)
	if s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Allocation && s.Missing == "" }); s.Value != 0.1 {
		t.Errorf("allocation %v, want 0.1", s.Value)
	}
	for _, q := range []quantity.Quantity{quantity.Usage, quantity.Throttled} {
		o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == q && s.Missing == "" && s.Value > 0 })
	}
	end()
	removeGroup(t, root, name)
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Throttled && s.Missing == "absent" })
	// The counters of the new group begin at 0: that is no usage below 0.
	makeGroup(t, root, name, nil)
	if s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "" }); s.Value != 0 {
		t.Errorf("an empty group uses %v", s.Value)
	}
}

func FuzzStatParsersAreTotal(f *testing.F) {
	for _, s := range []string{
		"usage_usec 916644140\nuser_usec 747792369\nnr_periods 1\nnr_throttled 1\nthrottled_usec 5\n",
		"nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "", "nr_periods -1", "usage_usec 18446744073709551615", "123",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, _, err := cgroup.ParseStat(s); err == nil && r.Used < 0 {
			t.Errorf("%q: %+v", s, r)
		}
		if d, err := cgroup.ParseUsage(s); err == nil && d < 0 {
			t.Errorf("%q: %v", s, d)
		}
	})
}

func TestOfGroupsThatCameAndWentNothingIsOpen(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		skip(t, "no cpu hierarchy: %v", err)
	}
	prefix := "trimtab-came-" + strconv.Itoa(os.Getpid()) + "-"
	makeGroup(t, root, prefix+"stays", nil)
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Host: "h", Path: prefix + "*"}}})
	round := func() { // one begins with the group that stays after this
		for range 2 {
			o.until(t, func(s *trimtab.Sample) bool { return s.Instance == "stays" && s.Quantity == quantity.Usage })
		}
	}
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			skip(t, "no /proc: %v", err)
		}
		return len(all)
	}
	round()
	before := open()
	for i := range 30 {
		makeGroup(t, root, prefix+strconv.Itoa(i), nil)
	}
	o.until(t, func(s *trimtab.Sample) bool { return s.Instance == "9" && s.Missing == "" }) // the last by name
	most := open()
	for i := range 30 {
		removeGroup(t, root, prefix+strconv.Itoa(i))
	}
	o.until(t, func(s *trimtab.Sample) bool { return s.Instance == "9" && s.Missing == "absent" })
	round()
	if after := open(); after > before+2 { // lists of threads and processes, once the host is full
		t.Errorf("%d descriptors are open, %d with 30 groups more, %d before", after, most, before)
	}
}

// A group is stopped by its own quota, and by the least of those above.
func TestAGroupTellsHowOftenItsOwnLimitOrThatAboveWasUsedUp(t *testing.T) {
	root := t.TempDir()
	stat := func(group, quota string, used, periods, throttled int) {
		put(t, quota+" 100000\n", root, group, "cpu.max")
		put(t, fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\n", used, periods, throttled), root, group, "cpu.stat")
	}
	stat("top", "900000", 9, 100, 0)
	stat("top/pool", "66000", 9, 100, 20)
	stat("top/pool/a", "max", 5, 0, 0)
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "a", Path: "top/pool/a"}}})
	throttled := func(fits func(s *trimtab.Sample) bool) {
		t.Helper()
		o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Throttled && fits(s) })
	}
	throttled(func(s *trimtab.Sample) bool { return s.Missing == "no period elapsed" })
	stat("top/pool", "66000", 19, 140, 30)
	throttled(func(s *trimtab.Sample) bool { return s.Value == 0.25 })
	stat("top/pool/a", "100000", 9, 8, 4)
	throttled(func(s *trimtab.Sample) bool { return s.Value == 0.5 })
	stat("top/pool", "66000", 29, 150, 35)
	throttled(func(s *trimtab.Sample) bool { return s.Value == 0.5 })
	stat("top/pool", "max", 29, 150, 35)
	throttled(func(s *trimtab.Sample) bool { return s.Missing == "first reading" })
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Usage && s.Missing == "" })
}
