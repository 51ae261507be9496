package hostfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
)

// files makes a directory with files in it.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCoresAreTheLeastOfWhatIsOnlineTheCpusetAndTheQuotasAbove(t *testing.T) {
	online := filepath.Join(files(t, map[string]string{"online": "0-5,8-9\n"}), "online")
	type group map[string]string
	for name, c := range map[string]struct {
		groups []group
		want   float64
	}{
		"no group says anything":              {nil, 8},
		"no limit":                            {[]group{{"cpu.max": "max 100000\n"}}, 8},
		"a container's quota":                 {[]group{{"cpu.max": "max 100000\n"}, {"cpu.max": "250000 100000\n"}}, 2.5},
		"the tightest of several":             {[]group{{"cpu.max": "300000 100000\n"}, {"cpu.max": "100000 100000\n"}, {"cpu.max": "200000 100000\n"}}, 1},
		"a version 1 quota":                   {[]group{{"cpu.cfs_quota_us": "150000\n", "cpu.cfs_period_us": "100000\n"}}, 1.5},
		"a version 1 group without limit":     {[]group{{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}}, 8},
		"a cpuset":                            {[]group{{"cpuset.cpus.effective": "1-3\n"}, {"cpuset.cpus.effective": "0-7\n"}}, 3},
		"a version 1 cpuset":                  {[]group{{"cpuset.cpus": "0,2\n", "cpuset.effective_cpus": "2\n"}}, 1},
		"an empty cpuset is that of above":    {[]group{{"cpuset.cpus.effective": "\n"}, {"cpuset.cpus.effective": "0-1\n"}}, 2},
		"nonsense does not bound":             {[]group{{"cpu.max": "much\n", "cpuset.cpus.effective": "3-1\n"}}, 8},
		"a quota above what is there is none": {[]group{{"cpu.max": "9900000 100000\n"}}, 8},
	} {
		var dirs []string
		for _, g := range c.groups {
			dirs = append(dirs, files(t, g))
		}
		if got := cpus(dirs, dirs, online); got != c.want {
			t.Errorf("%s: %v cores, want %v", name, got, c.want)
		}
	}
}

func TestMemoryIsTheLeastOfWhatThereIsAndTheLimitsAbove(t *testing.T) {
	meminfo := filepath.Join(files(t, map[string]string{"meminfo": "MemTotal:       1048576 kB\nMemFree:        8294572 kB\n"}), "meminfo")
	for name, c := range map[string]struct {
		group map[string]string
		want  float64
	}{
		"no group":          {nil, 1 << 30},
		"no limit":          {map[string]string{"memory.max": "max\n"}, 1 << 30},
		"a limit":           {map[string]string{"memory.max": "536870912\n"}, 1 << 29},
		"a version 1 limit": {map[string]string{"memory.limit_in_bytes": "268435456\n"}, 1 << 28},
		"version 1's none":  {map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"}, 1 << 30},
	} {
		if got, err := memory([]string{files(t, c.group)}, meminfo); err != nil || got != c.want {
			t.Errorf("%s: %v bytes (%v), want %v", name, got, err, c.want)
		}
	}
	if got, err := memory(nil, filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Errorf("without meminfo there are %v bytes, want an error", got)
	}
}

func TestATreeOfPlainFilesIsNotMeasured(t *testing.T) {
	for _, root := range []string{t.TempDir(), "/none"} {
		if n, err := CPUs(root); err == nil || root != "/none" && !errors.Is(err, trimtab.ErrUnsupported) {
			t.Errorf("%s has %v cores (%v), want an error", root, n, err)
		}
		if n, err := Memory(root); err == nil {
			t.Errorf("%s has %v bytes, want an error", root, n)
		}
	}
}

func TestThisHostIsMeasured(t *testing.T) {
	root, err := CPUHierarchy()
	if err != nil {
		t.Skipf("no cpu hierarchy: %v", err)
	}
	cores, err := CPUs(root)
	if err != nil || !(cores > 0) {
		t.Errorf("%v cores (%v)", cores, err)
	}
	bytes, err := Memory(root)
	if err != nil || !(bytes > 1<<20) {
		t.Errorf("%v bytes (%v)", bytes, err)
	}
	t.Logf("%v cores, %v bytes", cores, bytes)
}

// The kernel lists CPUs that isolcpus= took from its balancing in sys/devices/system/cpu/isolated,
// as these files do, and leaves them in every set.
func TestIsolatedCPUsAreNoCapacity(t *testing.T) {
	for _, c := range []struct {
		isolated, set string
		want          float64
	}{
		{"2-3\n", "0-7\n", 6}, {"2-3\n", "1-3\n", 1}, {"2-3\n", "", 6}, {"\n", "0-7\n", 8},
		{"2-3\n", "2-3\n", 2}, // a group that was put there on purpose
	} {
		online := filepath.Join(files(t, map[string]string{"online": "0-7\n", "isolated": c.isolated}), "online")
		var sets []string
		if c.set != "" {
			sets = []string{files(t, map[string]string{"cpuset.cpus.effective": c.set})}
		}
		if got := cpus(nil, sets, online); got != c.want {
			t.Errorf("%+v: %v cores", c, got)
		}
	}
}

func FuzzParseCPUsIsTotal(f *testing.F) {
	for _, s := range []string{"0-3,7", "0", "3-1", "0-99999999", "0-65535,0-65535"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if all := ParseCPUs(text); all != nil && (len(all) == 0 || len(all) > maxCPUs) {
			t.Errorf("%q: %d CPUs", text, len(all))
		}
	})
}
