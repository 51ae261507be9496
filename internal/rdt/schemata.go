package rdt

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// maxDomains bounds the caches of one host, and maxLines the resources.
const maxDomains, maxLines = 1024, 64

// Domain is the value of one instance of a resource, such as one L3 cache.
type Domain struct {
	ID    int
	Value uint64
}

// Line is one resource of a group's schemata: "L3:0=fffff;1=fffff".
type Line struct {
	// Name is the resource: L3, L3CODE, L3DATA, L2, MB, SMBA.
	Name string
	// Domains are in the kernel's order.
	Domains []Domain
}

// Schemata is the content of a schemata file.
type Schemata []Line

// hexadecimal returns the base of a resource's values.
func hexadecimal(name string) int {
	if strings.HasSuffix(name, "MB") || strings.HasSuffix(name, "MBA") {
		return 10
	}
	return 16
}

// ParseSchemata reads a schemata file. Values are hexadecimal masks, or decimal for memory
// bandwidth.
func ParseSchemata(text string) (Schemata, error) {
	var out Schemata
	for line := range strings.Lines(text) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" && !ok {
			continue
		}
		if !ok || name == "" || len(name) > 32 || len(out) == maxLines || out.Line(name) != nil {
			return nil, trimtab.Invalidf("schemata line %.60q: want each resource once, as NAME:ID=VALUE;…", line)
		}
		l := Line{Name: name}
		for part := range strings.SplitSeq(values, ";") {
			d, err := parseDomain(part, hexadecimal(name))
			if err != nil || len(l.Domains) == maxDomains || slices.ContainsFunc(l.Domains, func(x Domain) bool { return x.ID == d.ID }) {
				return nil, trimtab.Invalidf("schemata line %.60q: want each domain once, as ID=VALUE", line)
			}
			l.Domains = append(l.Domains, d)
		}
		out = append(out, l)
	}
	return out, nil
}

func parseDomain(text string, base int) (Domain, error) {
	id, value, ok := strings.Cut(strings.TrimSpace(text), "=")
	n, err := strconv.ParseUint(id, 10, 31)
	if err != nil || !ok {
		return Domain{}, trimtab.Invalidf("domain %.40q", text)
	}
	v, err := strconv.ParseUint(strings.TrimSpace(value), base, 64)
	if err != nil {
		return Domain{}, trimtab.Invalidf("domain %.40q", text)
	}
	return Domain{int(n), v}, nil
}

// Line returns the line of a resource, or nil.
func (s Schemata) Line(name string) *Line {
	for i := range s {
		if s[i].Name == name {
			return &s[i]
		}
	}
	return nil
}

// Alike returns the value that all domains have; false if they differ, or there is none.
func (l *Line) Alike() (uint64, bool) {
	if l == nil || len(l.Domains) == 0 {
		return 0, false
	}
	for _, d := range l.Domains {
		if d.Value != l.Domains[0].Value {
			return 0, false
		}
	}
	return l.Domains[0].Value, true
}

// Equal reports whether two lines give all domains the same.
func (l *Line) Equal(m *Line) bool {
	return l != nil && m != nil && slices.Equal(l.Domains, m.Domains)
}

// All returns the line with one value for all domains.
func (l *Line) All(value uint64) *Line {
	out := Line{Name: l.Name, Domains: slices.Clone(l.Domains)}
	for i := range out.Domains {
		out.Domains[i].Value = value
	}
	return &out
}

// String is the line as it is written, with its end.
func (l *Line) String() string {
	var b strings.Builder
	b.WriteString(l.Name)
	for i, d := range l.Domains {
		separator := ';'
		if i == 0 {
			separator = ':'
		}
		fmt.Fprintf(&b, "%c%d=%s", separator, d.ID, strconv.FormatUint(d.Value, hexadecimal(l.Name)))
	}
	return b.String() + "\n"
}

// ParseCount reads a file with one number, such as min_cbm_bits.
func ParseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, trimtab.Invalidf("%.40q: want a number", text)
	}
	return n, nil
}

// ParseMask reads a file with one mask, such as cbm_mask.
func ParseMask(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
	if err != nil {
		return 0, trimtab.Invalidf("%.40q: want a mask", text)
	}
	return n, nil
}

// ParseMonitor reads a file of mon_data: a number of bytes, or a word such as Unavailable, Error
// or Unassigned, which is the reason for the missing value.
func ParseMonitor(text string) (bytes uint64, missing string) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && n < math.MaxUint64:
		return n, ""
	case text == "Unavailable" || text == "Error" || text == "Unassigned":
		return 0, strings.ToLower(text)
	}
	return 0, "unreadable"
}
