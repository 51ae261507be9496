package rapl

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// The folders of the kernel.
const (
	Zones    = "/sys/devices/virtual/powercap/intel-rapl"
	Policies = "/sys/devices/system/cpu/cpufreq"
)

// Zone is the kernel's reading of one CPU package at one time.
type Zone struct {
	// Name is the name of the package, "package-0".
	Name string
	// Energy is in microjoules, in [0, Range]; after Range it starts at 0 again.
	Energy, Range uint64
	// Err is why Energy is missing.
	Err error
	// Limit is the long-term power limit of the package, in W; 0: unknown.
	Limit float64
}

// Policy is the clock of some CPUs.
type Policy struct {
	Name string
	CPUs string
	MHz  float64
	// Most is the highest clock, and Base the one that the processor sustains under any load
	// within its TDP, in MHz; 0: unknown.
	Most, Base float64
	Err        error
}

// Reading has all values of a host at one time.
type Reading struct {
	// At is the time since the host booted.
	At       time.Duration
	Zones    []Zone
	Policies []Policy
	// Err is why there are no zones; NoPolicies is why there are no policies.
	Err, NoPolicies error
}

// Reader reads a host.
type Reader struct {
	// Zones and Policies are the folders of the kernel; "": where Linux has them.
	Zones, Policies string
}

// Read reads all values once. A value that could not be read has the error.
func (r *Reader) Read() Reading {
	out := Reading{At: hostfs.BootTime()}
	out.Zones, out.Err = readZones(orElse(r.Zones, Zones))
	out.Policies, out.NoPolicies = readPolicies(orElse(r.Policies, Policies))
	return out
}

func orElse(dir, otherwise string) string {
	if dir == "" {
		return otherwise
	}
	return dir
}

// list opens a folder and names what matches in it.
func list(dir, pattern, missing string) (*hostfs.Root, []string, error) {
	root, err := hostfs.OpenRoot(dir)
	if err == nil {
		var names []string
		names, err = filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && len(names) > 0 {
			slices.SortFunc(names, func(a, b string) int {
				if len(a) != len(b) {
					return len(a) - len(b) // intel-rapl:2 before intel-rapl:10
				}
				return strings.Compare(a, b)
			})
			return root, names, nil
		}
		root.Close()
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s: %w", missing, trimtab.ErrUnsupported)
	}
	return nil, nil, err
}

func readZones(dir string) ([]Zone, error) {
	const missing = "no RAPL on this host, as in most virtual machines"
	root, names, err := list(dir, "intel-rapl:*", missing)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var all []Zone
	for _, name := range names {
		name = filepath.Base(name)
		called, err := root.Read(path.Join(name, "name"))
		if called = strings.TrimSpace(called); err != nil || !strings.HasPrefix(called, "package") {
			continue // a part of a package, or the whole platform
		}
		z := Zone{Name: called}
		if z.Energy, z.Err = readNumber(root, path.Join(name, "energy_uj")); z.Err == nil {
			z.Range, z.Err = readNumber(root, path.Join(name, "max_energy_range_uj"))
		}
		z.Limit = longTerm(root, name)
		all = append(all, z)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no zone of a package: %w", missing, trimtab.ErrUnsupported)
	}
	return all, nil
}

// longTerm returns the limit of the constraint of that name in W; 0: there is none.
func longTerm(root *hostfs.Root, zone string) float64 {
	for i := range 4 {
		prefix := path.Join(zone, "constraint_"+strconv.Itoa(i))
		name, err := root.Read(prefix + "_name")
		if err != nil || strings.TrimSpace(name) != "long_term" {
			continue
		}
		if v, err := readNumber(root, prefix+"_power_limit_uw"); err == nil {
			return float64(v) / 1e6
		}
	}
	return 0
}

func readPolicies(dir string) ([]Policy, error) {
	root, names, err := list(dir, "policy*", "no cpufreq on this host, as in most virtual machines")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := make([]Policy, len(names))
	for i, name := range names {
		p := &all[i]
		p.Name = filepath.Base(name)
		cpus, err := root.Read(path.Join(p.Name, "affected_cpus"))
		p.CPUs = strings.TrimSpace(cpus)
		var v uint64
		if err == nil {
			v, err = readNumber(root, path.Join(p.Name, "scaling_cur_freq"))
		}
		p.MHz, p.Err = float64(v)/1000, err
		if err == nil && (v == 0 || v > 1e9) {
			p.MHz, p.Err = 0, trimtab.Invalidf("%s: %d kHz", p.Name, v)
		}
		p.Most, p.Base = clock(root, path.Join(p.Name, "cpuinfo_max_freq")), clock(root, path.Join(p.Name, "base_frequency"))
	}
	return all, nil
}

// clock reads a file in kHz as MHz; 0: it is missing or invalid.
func clock(root *hostfs.Root, name string) float64 {
	v, err := readNumber(root, name)
	if err != nil || v > 1e9 {
		return 0
	}
	return float64(v) / 1000
}

func readNumber(root *hostfs.Root, name string) (uint64, error) {
	text, err := root.Read(name)
	if err != nil {
		return 0, err
	}
	return ParseNumber(text)
}

// ParseNumber reads a file of powercap or cpufreq that holds one number.
func ParseNumber(text string) (uint64, error) {
	v, err := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	if err != nil {
		return 0, trimtab.Invalidf("%.40q: want a number", text)
	}
	return v, nil
}

// Draws returns the mean power of a package between two readings, in W.
func Draws(before, after Zone, window time.Duration) (watts float64, err error) {
	switch {
	case errors.Join(before.Err, after.Err) != nil:
		return 0, errors.Join(before.Err, after.Err)
	case before.Name != after.Name || window <= 0:
		return 0, trimtab.Invalidf("%s and %s, %v apart, are not two readings of one package", before.Name, after.Name, window)
	case after.Energy > after.Range || before.Energy > after.Range:
		return 0, trimtab.Invalidf("%s: energy %d and %d beyond its range %d", after.Name, before.Energy, after.Energy, after.Range)
	}
	used := after.Energy - before.Energy
	if after.Energy < before.Energy { // the counter wrapped around in between
		used = after.Range - before.Energy + after.Energy
	}
	watts = float64(used) / 1e6 / window.Seconds()
	if math.IsInf(watts, 0) {
		return 0, trimtab.Invalidf("%s: %d uJ in %v", after.Name, used, window)
	}
	return watts, nil
}

// Power returns the mean power of all packages together between two readings, and the sum of their
// power limits, both in W. If a package is missing there is no sum.
func Power(before, after Reading) (draws, may float64, err error) {
	if err := errors.Join(before.Err, after.Err); err != nil {
		return 0, 0, err
	}
	if len(before.Zones) != len(after.Zones) {
		return 0, 0, trimtab.Invalidf("%d packages, and then %d", len(before.Zones), len(after.Zones))
	}
	for i, z := range after.Zones {
		w, err := Draws(before.Zones[i], z, after.At-before.At)
		if err != nil {
			return 0, 0, err
		}
		if z.Limit <= 0 {
			return 0, 0, fmt.Errorf("power limit of %s: %w", z.Name, trimtab.ErrUnsupported)
		}
		draws, may = draws+w, may+z.Limit
	}
	return draws, may, nil
}
