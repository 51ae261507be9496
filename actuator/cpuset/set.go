package cpuset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// maxCPU is the largest number that is read; kernels are built for at most 8192.
const maxCPU = 1<<14 - 1

// Set is a set of CPUs (hardware threads) by number, ascending.
type Set []int

// ParseSet reads the kernel's list format, such as 0-3,7; "" is the empty set.
func ParseSet(list string) (Set, error) {
	var s Set
	list = strings.TrimSpace(list)
	if list == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, bad := strconv.ParseUint(to, 10, 16)
		if err != nil || bad != nil || first > last || last > maxCPU || len(s) > maxCPU {
			return nil, trimtab.Invalidf("CPU list %.60q: want numbers and ranges up to %d, such as 0-3,7", list, maxCPU)
		}
		for n := first; n <= last; n++ {
			s = append(s, int(n))
		}
	}
	slices.Sort(s)
	return slices.Compact(s), nil
}

// String prints the list format.
func (s Set) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Has reports whether the set contains n.
func (s Set) Has(n int) bool { _, ok := slices.BinarySearch(s, n); return ok }

// And returns the intersection.
func (s Set) And(t Set) (out Set) {
	for _, n := range s {
		if t.Has(n) {
			out = append(out, n)
		}
	}
	return out
}

// Or returns the union.
func (s Set) Or(t Set) Set {
	out := slices.Concat(s, t)
	slices.Sort(out)
	return slices.Compact(out)
}

// Covers reports whether s contains all of t.
func (s Set) Covers(t Set) bool {
	return !slices.ContainsFunc(t, func(n int) bool { return !s.Has(n) })
}

// Meets reports whether the sets have a CPU in common.
func (s Set) Meets(t Set) bool { return slices.ContainsFunc(s, t.Has) }

// mask returns the set in systemd's form: a bit for each CPU, the lowest first.
func (s Set) mask() []byte {
	b := []byte{}
	for _, n := range s {
		for len(b) <= n/8 {
			b = append(b, 0)
		}
		b[n/8] |= 1 << (n % 8)
	}
	return b
}
