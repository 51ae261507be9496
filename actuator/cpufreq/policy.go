package cpufreq

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// system is the kernel's directory of cpufreq policies.
const system = "/sys/devices/system/cpu/cpufreq"

// files is a directory of policies: the kernel's, or a test's imitation.
type files interface {
	Read(name string) (string, error)
	Write(name, value string) error
	Writable(name string) error
	// Policies lists the existing policies, in no order; none if the kernel has no cpufreq.
	Policies() ([]string, error)
	// Online lists the CPUs that are online.
	Online() (string, error)
	Close() error
}

// folder implements files with a directory.
type folder struct{ *hostfs.Root }

func openFolder(dir string) (files, error) {
	root, err := hostfs.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(dir)
	}
	if err != nil {
		return nil, err
	}
	return folder{root}, nil
}

func (f folder) Policies() ([]string, error) {
	all, err := filepath.Glob(filepath.Join(f.Path(), "policy*"))
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all, err
}

func (f folder) Online() (string, error) {
	b, err := os.ReadFile(filepath.Join(f.Path(), "..", "online"))
	return string(b), err
}

func missing(dir string) error {
	return fmt.Errorf("no policies in %s: this kernel has no cpufreq driver for these CPUs, as in most virtual machines: %w", dir, trimtab.ErrUnsupported)
}

// policy is one policy of the kernel. Frequencies are in kHz.
type policy struct {
	name string
	// cpus are the CPUs of the policy that are online.
	cpus []int
	// ceiling is the highest frequency in force; it can be set from least to most.
	ceiling, least, most int64
	// table has the frequencies that the hardware offers, ascending; nil: any.
	table []int64
	// offline says that all its CPUs are offline. The kernel then keeps the ceiling but does not
	// show it.
	offline bool
}

// offline reports whether err is the kernel's answer for a policy without online CPUs.
func offline(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EAGAIN)
}

// readAll reads the existing policies, by name.
func readAll(f files, dir string) (map[string]*policy, error) {
	shapes, err := readShapes(f, dir)
	if err != nil {
		return nil, err
	}
	return shapes.read(f, func(*policy) bool { return true })
}

// shapes has the properties that change only when CPUs go online or offline: the CPUs of each
// policy, its lowest frequency and its table. They are cached, as a host may have hundreds of
// policies, and a knob needs few of them.
type shapes map[string]*policy

// readShapes reads the shapes of the existing policies.
func readShapes(f files, dir string) (shapes, error) {
	names, err := f.Policies()
	if err != nil {
		return nil, fmt.Errorf("list policies in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, missing(dir)
	}
	all := shapes{}
	for _, name := range names {
		p, err := readShape(f, name)
		switch {
		case errors.Is(err, os.ErrNotExist): // the policy was removed meanwhile
		case err != nil:
			return nil, err
		default:
			all[name] = p
		}
	}
	return all, nil
}

func readShape(f files, name string) (*policy, error) {
	p := &policy{name: name}
	list, err := f.Read(path.Join(name, "affected_cpus"))
	if err == nil {
		p.cpus, err = ParseCPUs(list)
	}
	if err == nil {
		p.least, err = readFrequency(f, path.Join(name, "cpuinfo_min_freq"))
	}
	if err == nil {
		p.table, err = readTable(f, name)
	}
	if offline(err) || err == nil && len(p.cpus) == 0 {
		return &policy{name: name, offline: true}, nil
	}
	return p, err
}

// read returns all policies. For the wanted ones it also reads the values that may change at any
// time.
func (s shapes) read(f files, wanted func(*policy) bool) (map[string]*policy, error) {
	all := make(map[string]*policy, len(s))
	for name, shape := range s {
		p := shape
		if wanted(shape) {
			var err error
			p, err = readPolicy(f, shape)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all[name] = p
	}
	return all, nil
}

// readPolicy reads one policy; the error is os.ErrNotExist when it is gone.
func readPolicy(f files, shape *policy) (*policy, error) {
	p := *shape
	var err error
	var floor int64
	for _, v := range []struct {
		file string
		to   *int64
	}{{"scaling_max_freq", &p.ceiling}, {"scaling_min_freq", &floor}, {"cpuinfo_max_freq", &p.most}} {
		if err == nil {
			*v.to, err = readFrequency(f, path.Join(p.name, v.file))
		}
	}
	if offline(err) {
		return &policy{name: p.name, offline: true}, nil
	}
	if err != nil {
		return nil, err
	}
	// A ceiling below scaling_min_freq would make the kernel lower that as well.
	p.least = min(max(p.least, floor), p.most)
	p.table = slices.DeleteFunc(slices.Clone(p.table), func(v int64) bool { return v < p.least || v > p.most })
	return &p, nil
}

func readFrequency(f files, name string) (int64, error) {
	text, err := f.Read(name)
	if err != nil {
		return 0, err
	}
	return ParseFrequency(text)
}

// maxFrequency is the highest plausible frequency, in kHz; a file with more is an error.
const maxFrequency = 1e9

// ParseFrequency reads a file of cpufreq that holds a frequency in kHz.
func ParseFrequency(text string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < 1 || v > maxFrequency {
		return 0, trimtab.Invalidf("frequency %.40q: want kHz", text)
	}
	return v, nil
}

// readTable reads the frequencies of a driver with a table, boost frequencies included.
func readTable(f files, name string) ([]int64, error) {
	var all []int64
	for _, file := range []string{"scaling_available_frequencies", "scaling_boost_frequencies"} {
		text, err := f.Read(path.Join(name, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(text) {
			v, err := ParseFrequency(word)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// resolve returns the ceiling in force after v was written: the highest frequency of the
// table that is at most v, within what the policy can do.
func (p *policy) resolve(v int64) int64 {
	v = min(max(v, p.least), p.most)
	if v == p.most || len(p.table) == 0 {
		return v
	}
	i, found := slices.BinarySearch(p.table, v)
	if !found {
		i = max(0, i-1)
	}
	return p.table[i]
}

// amountOf returns the highest ceiling of several policies; unlimited if none of them is
// lowered.
func amountOf(all []*policy) trimtab.Amount {
	var highest int64
	bounded := false
	for _, p := range all {
		bounded = bounded || p.ceiling < p.most
		highest = max(highest, p.ceiling)
	}
	if !bounded {
		return trimtab.Unlimited()
	}
	return trimtab.Units(float64(highest) / 1000)
}

// kilohertz returns the value to write for an amount, in kHz.
func kilohertz(a trimtab.Amount) int64 {
	if a.Unlimited {
		return maxFrequency
	}
	return int64(math.Round(math.Min(a.Value*1000, maxFrequency)))
}

// ParseCPUs reads a list of CPUs in either form of the kernel, "0-3,7" or "0 1 2".
func ParseCPUs(list string) ([]int, error) {
	return cpuset.ParseSet(strings.Join(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }), ","))
}

// byNumber orders policy2 before policy10.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
