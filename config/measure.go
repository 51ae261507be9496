package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/collector/poll"
	known "github.com/trimtab/trimtab/collector/sources"
)

// Asks returns what the file says of a source, and whether it asks for it.
func (m *Measure) Asks(of poll.Source) (settings []string, asked bool) {
	switch of.Key {
	case "":
		return nil, true
	case "power":
		return nil, m.Power
	case "links":
		return m.Links, len(m.Links) > 0
	case "perf":
		return nil, m.Perf
	}
	setting, asked := m.Sources[of.Name]
	return []string{setting}, asked
}

// check looks at the sources that are named, and at the names of interfaces that are read.
func (m *Measure) check(v *validator) {
	checks, names := map[string]func(string) (string, error){}, []string(nil)
	for _, of := range known.All() {
		if of.Check != nil {
			checks[of.Name], names = of.Check, append(names, of.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Sources)) {
		at := "measure.sources." + name
		check := checks[name]
		if check == nil {
			v.fail(at, fmt.Sprintf("unknown source %q", clip(name)), suggest(name, names))
			continue
		}
		if hint, err := check(m.Sources[name]); err != nil {
			v.fail(at, err.Error(), hint)
		}
	}
	all := m.Links
	if len(all) > maxLinks {
		v.fail("measure.links", fmt.Sprintf("%d interfaces, limit %d", len(all), maxLinks), "name the interfaces that carry the host's traffic")
	}
	for i, name := range all {
		if name == "" || len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/\x00 \n") {
			v.fail(fmt.Sprintf("measure.links[%d]", i), fmt.Sprintf("%q is no name of an interface", clip(name)), "write at most 15 characters, as in eth0: ip link shows them")
		}
	}
}

// maxLinks bounds the interfaces that are read.
const maxLinks = 64
