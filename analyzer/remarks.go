package analyzer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// remarksLast is how long a remark stays valid without repetition; it is repeated every minute.
	remarksLast = 150 * time.Second
	// maxRemarks is the largest number of instances with remarks that are kept, maxRemark the
	// length of a remark in bytes.
	maxRemarks, maxRemark = 100, 1000
)

// remarks are the newest remarks on the control groups of a workload, in order of host and
// instance.
type remarks []*trimtab.Sample

// observe keeps a remark, and drops expired ones.
func (r *remarks) observe(s *trimtab.Sample) {
	i, found := slices.BinarySearchFunc(*r, s, func(a, b *trimtab.Sample) int {
		return strings.Compare(a.Host+"\x00"+a.Instance, b.Host+"\x00"+b.Instance)
	})
	switch {
	case found && newer(s, (*r)[i]):
		(*r)[i] = s
	case !found:
		before := s.Time.Add(-remarksLast)
		*r = slices.DeleteFunc(slices.Insert(*r, i, s), func(x *trimtab.Sample) bool { return x.Time.Before(before) })
		if len(*r) > maxRemarks {
			*r = (*r)[:maxRemarks]
		}
	}
}

// note returns the current remark on one instance, and how many more there are; "": none.
func (r remarks) note(now time.Time) (text string) {
	n := 0
	for _, s := range r {
		if !(s.Value > 0) || s.Note == "" || s.Missing != "" || now.Sub(s.Time) > remarksLast {
			continue
		}
		if n++; n == 1 {
			text = s.Note
			if s.Instance != "" {
				text = "instance " + s.Instance + ": " + text
			}
		}
	}
	if len(text) > maxRemark {
		text = strings.ToValidUTF8(text[:maxRemark], "") + "…"
	}
	switch {
	case n == 2:
		text += " (and there is something of 1 more instance)"
	case n > 2:
		text += fmt.Sprintf(" (and there is something of %d more instances)", n-1)
	}
	return text
}
