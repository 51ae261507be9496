package cpufreq

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// kernel plays drivers/cpufreq: it keeps what was asked for, and shows what is in
// force.
type kernel struct {
	mu       sync.Mutex
	policies map[string]*domain
	// stop makes the writes from then on fail with EIO; below 0: none.
	stop int
	// reads counts files that were read.
	reads int
}

// domain is a policy as the kernel has it, in kHz.
type domain struct {
	related       []int
	online        bool
	min, max      int64
	wantMin, want int64
	table         []int64
	cooling       int64
	written       int
}

// inForce is cpufreq_set_policy: the least of what is asked for, verified against
// the limits of the hardware and resolved to the table.
func (d *domain) inForce() (lower, upper int64) {
	clamp := func(v int64) int64 { return min(max(v, d.min), d.max) }
	lower, upper = clamp(d.wantMin), clamp(d.want)
	if d.cooling > 0 {
		upper = clamp(min(upper, d.cooling))
	}
	lower = min(lower, upper)
	if d.table != nil { // CPUFREQ_RELATION_H: the highest at or below
		below := d.table[0]
		for _, f := range d.table {
			if f <= upper {
				below = f
			}
		}
		upper = below
	}
	return lower, upper
}

func (k *kernel) at(name string) (*domain, string, error) {
	dir, file := path.Split(name)
	d := k.policies[path.Clean(dir)]
	if d == nil {
		return nil, "", fmt.Errorf("read %s: %w", name, os.ErrNotExist)
	}
	if !d.online {
		return nil, "", fmt.Errorf("read %s: %w", name, syscall.EBUSY)
	}
	return d, file, nil
}

func (k *kernel) Online() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []int
	for _, d := range k.policies {
		if d.online {
			all = append(all, d.related...)
		}
	}
	slices.Sort(all)
	return strings.Trim(fmt.Sprint(all), "[]") + "\n", nil
}

func (k *kernel) Read(name string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	d, file, err := k.at(name)
	if err != nil {
		return "", err
	}
	lower, upper := d.inForce()
	switch file {
	case "affected_cpus", "related_cpus":
		return strings.Trim(fmt.Sprint(d.related), "[]") + "\n", nil
	case "scaling_max_freq":
		return fmt.Sprintln(upper), nil
	case "scaling_min_freq":
		return fmt.Sprintln(lower), nil
	case "cpuinfo_min_freq":
		return fmt.Sprintln(d.min), nil
	case "cpuinfo_max_freq":
		return fmt.Sprintln(d.max), nil
	case "scaling_available_frequencies":
		if d.table != nil {
			return strings.Trim(fmt.Sprint(d.table), "[]") + " \n", nil
		}
	}
	return "", fmt.Errorf("read %s: %w", name, os.ErrNotExist)
}

func (k *kernel) Write(name, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, file, err := k.at(name)
	if err != nil {
		return err
	}
	if k.stop == 0 {
		return fmt.Errorf("write %s: %w", name, syscall.EIO)
	}
	k.stop--
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil || file != "scaling_max_freq" {
		return fmt.Errorf("write %s %q: %w", name, value, syscall.EINVAL)
	}
	d.want = v
	d.written++
	return nil
}

func (k *kernel) Writable(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _, err := k.at(name)
	return err
}

func (k *kernel) Policies() (all []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.policies {
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}

func (k *kernel) Close() error { return nil }

func (k *kernel) open() (files, error) { return k, nil }

// ask is what somebody asked for of each policy.
func (k *kernel) asked() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for name, d := range k.policies {
		all = append(all, fmt.Sprintf("%s=%d", strings.TrimPrefix(name, "policy"), d.want/1000))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// host makes a kernel with n policies of two CPUs, which go from 800 to 3000 MHz,
// and a tree of groups with their cpusets.
func host(t *testing.T, n int, groups map[string]string) (*kernel, string) {
	t.Helper()
	k := &kernel{policies: map[string]*domain{}, stop: -1}
	for i := range n {
		k.policies[fmt.Sprint("policy", 2*i)] = &domain{related: []int{2 * i, 2*i + 1}, online: true, min: 800_000, max: 3_000_000, wantMin: 800_000, want: 3_000_000}
	}
	root := t.TempDir()
	put(t, root, "cpuset.cpus.effective", fmt.Sprintf("0-%d\n", 2*n-1))
	for group, cpus := range groups {
		if err := os.MkdirAll(filepath.Join(root, group), 0o755); err != nil {
			t.Fatal(err)
		}
		if cpus != "" {
			put(t, root, group+"/cpuset.cpus.effective", cpus)
		}
	}
	return k, root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
