package cpuset

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/trimtab/trimtab"
)

// sysfs is where the kernel lists CPUs.
const sysfs = "/sys/devices/system/cpu"

// Machine caches which CPUs are threads of one core, and reads this again when the set of online
// CPUs changes. It is safe for concurrent use; the zero Machine is ready to use.
type Machine struct {
	mu     sync.Mutex
	dir    string
	online string
	cores  Topology
}

// Topology returns the cores with the CPUs that are online. The error is trimtab.ErrUnsupported if
// the kernel does not say which CPUs share a core.
func (m *Machine) Topology() (Topology, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.read("online")
	if err != nil {
		return nil, fmt.Errorf("read topology: %w: %w", err, trimtab.ErrUnsupported)
	}
	if m.cores != nil && text == m.online {
		return m.cores, nil
	}
	online, err := ParseSet(text)
	if err != nil {
		return nil, fmt.Errorf("read topology: %w", err)
	}
	var cores Topology
	var seen Set
	for _, n := range online {
		if seen.Has(n) {
			continue
		}
		core, err := m.coreOf(n)
		if err != nil {
			return nil, fmt.Errorf("read topology: %w", err)
		}
		cores = append(cores, core)
		seen = seen.Or(core)
	}
	m.online, m.cores = text, cores
	return cores, nil
}

// Possible returns the CPUs that this machine can ever have; if the kernel does not say, it returns
// otherwise.
func (m *Machine) Possible(otherwise Set) Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.read("possible")
	if err != nil {
		return otherwise
	}
	all, err := ParseSet(text)
	if err != nil || !all.Covers(otherwise) {
		return otherwise
	}
	return all
}

// Usable returns the CPUs of a set that are not isolated. The kernel balances no tasks over
// isolated CPUs, so all threads of a process would stay on one of them. If all CPUs of the set are
// isolated, it returns the set.
func (m *Machine) Usable(all Set) Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.read("isolated")
	if err != nil || text == "" {
		return all
	}
	isolated, err := ParseSet(text)
	if err != nil {
		return all
	}
	var rest Set
	for _, n := range all {
		if !isolated.Has(n) {
			rest = append(rest, n)
		}
	}
	if len(rest) == 0 {
		return all
	}
	return rest
}

// coreOf reads which CPUs are threads of the core with CPU n.
func (m *Machine) coreOf(n int) (Set, error) {
	at := filepath.Join("cpu"+strconv.Itoa(n), "topology")
	text, err := m.read(filepath.Join(at, "core_cpus_list"))
	if err != nil { // before Linux 5.7
		text, err = m.read(filepath.Join(at, "thread_siblings_list"))
	}
	if err != nil {
		return nil, fmt.Errorf("threads of CPU %d: %w: %w", n, err, trimtab.ErrUnsupported)
	}
	core, err := ParseSet(text)
	if err == nil && !core.Has(n) {
		err = trimtab.Invalidf("threads of CPU %d are %s", n, core)
	}
	return core, err
}

func (m *Machine) read(name string) (string, error) {
	if m.dir == "" {
		m.dir = sysfs
	}
	b, err := os.ReadFile(filepath.Join(m.dir, name))
	return strings.TrimSpace(string(b)), err
}
