package load

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// host writes the files of a kernel.
func host(t *testing.T, files map[string]string) Reader {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Reader{Proc: filepath.Join(dir, "proc"), Sys: filepath.Join(dir, "sys")}
}

// at is a reading at a time.
func at(r Reader, seconds int) Reading {
	out := r.Read()
	out.At = time.Duration(seconds) * time.Second
	for name, l := range out.links {
		l.At = out.At
		out.links[name] = l
	}
	return out
}

func TestLoadsAreWhatTheKernelCountedBetweenTwoReadings(t *testing.T) {
	before := host(t, map[string]string{
		"proc/stat":         "cpu  100 0 100 700 100 0 0 0 5 0\ncpu0 50 0 50 350 50 0 0 0 0 0\ncpu1 50 0 50 350 50 0 0 0 0 0\nintr 1\n",
		"proc/diskstats":    "   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vda 1 0 0 0 0 0 0 0 0 1000 0 0 0\n 254 1 vda1 1 0 0 0 0 0 0 0 0 9000 0 0 0\n",
		"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
		"sys/block/vda/x":   "", "sys/class/net/eth0/statistics/tx_bytes": "1000\n", "sys/class/net/eth0/speed": "8\n",
		"sys/class/net/lo/statistics/tx_bytes": "5\n",
	})
	after := host(t, map[string]string{
		"proc/stat":         "cpu  150 0 120 760 110 0 0 60 5 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n",
		"proc/meminfo":      "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\nHugePages_Total: 0\n",
		"proc/loadavg":      "1.50 0.18 0.12 1/80 11206\n",
		"proc/diskstats":    " 254 0 vda 1 0 0 0 0 0 0 0 0 1500 0 0 0\n 254 1 vda1 1 0 0 0 0 0 0 0 0 9900 0 0 0\n",
		"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1200000\n",
		"sys/block/vda/x":   "", "sys/class/net/eth0/statistics/tx_bytes": "501000\n", "sys/class/net/eth0/speed": "8\n",
	})
	want := map[string]Load{
		"cpu": {1.3, 2}, "memory": {600 * 1024, 1000 * 1024}, "load": {1.5, 2}, "disk": {0.25, 1}, "pressure_cpu": {0.1, 1}, "network": {250_000, 1e6},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, Between(at(before, 10), at(after, 12)), near); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatAHostDoesNotTellIsMissingAndNotZero(t *testing.T) {
	nothing := host(t, nil)
	if got := Between(at(nothing, 1), at(nothing, 2)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	bad := host(t, map[string]string{"proc/stat": "cpu a b c d e f g h\n", "proc/meminfo": "MemTotal: 1 kB\nMemAvailable: 2 kB\n", "proc/loadavg": "NaN 1 1",
		"proc/diskstats": "1 2\n 254 0 vda x x x x x x x x x -1 0\n", "proc/pressure/io": "some total=-1\n"})
	if got := Between(at(bad, 1), at(bad, 2)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// Counters that went back, and no time between, say nothing of rates.
	good := host(t, map[string]string{"proc/stat": "cpu  100 0 100 700 100 0 0 0 5 0\ncpu0 1 1 1 1 1 1 1 1 1\n", "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n"})
	later := at(good, 5)
	later.all, later.busy, later.waits["cpu"] = later.all+100, later.busy+100, 5*time.Second
	if got := Between(later, at(good, 6)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := Between(at(good, 5), later); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestThisHostTellsOfItsMemory(t *testing.T) {
	r := Reader{}
	before := r.Read()
	if l := Between(before, r.Read())["memory"]; !(l.Used > 0 && l.Used < l.Capacity) {
		t.Errorf("%+v", l)
	}
}

func BenchmarkRead(b *testing.B) {
	r := Reader{}
	for b.Loop() {
		r.Read()
	}
}

// Found: pressure of 77% on a host that was 11% used, all of it stops by trimtab's own quotas,
// which the kernel counts as waiting (kernel/sched/psi.c: what can run and does not).
func TestStopsByOurOwnQuotasAreNoContentionOfTheHost(t *testing.T) {
	read := func(busy, waited, stopped string, groups bool) Reader {
		r := host(t, map[string]string{
			"proc/stat":         "cpu  " + busy + " 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n",
			"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + waited + "\n",
		})
		dir := filepath.Join(r.Proc, "group")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cpu.stat"), []byte(stopped), 0o600); err != nil {
			t.Fatal(err)
		}
		if groups {
			r.Groups = func() []string { return []string{dir} }
		}
		return r
	}
	for _, c := range []struct {
		what, busy, stopped string
		groups              bool
		want                float64
	}{
		{"stops alone", "800 0 0 300", "nr_throttled 9\nthrottled_usec 8700000\n", true, 0},
		{"stops of version 1 alone", "800 0 0 300", "throttled_time 8700000000\n", true, 0},
		{"contention beside stops", "800 0 0 300", "throttled_usec 3000000\n", true, 0.57},
		{"a host that is busy", "800 0 0 300", "throttled_usec 1000000\n", true, 0.77},
		{"no more than CPUs were busy", "110 0 0 990", "throttled_usec 1000000\n", false, 0.02},
	} {
		before, after := at(read("100 0 0 100", "1000000", "throttled_usec 1000000\n", c.groups), 10), at(read(c.busy, "8700000", c.stopped, c.groups), 20)
		for dir, d := range before.stopped { // each reading has a directory of its own here
			for other := range after.stopped {
				delete(before.stopped, dir)
				before.stopped[other] = d
			}
		}
		if got := Between(before, after)["pressure_cpu"].Used; got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("%s: pressure %v, want %v", c.what, got, c.want)
		}
	}
}
