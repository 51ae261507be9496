package psi

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Stall is one line of a pressure file.
type Stall struct {
	// Avg10, Avg60 and Avg300 are the kernel's averages in percent, over seconds.
	Avg10, Avg60, Avg300 float64
	// Total is how long tasks waited since the group was made.
	Total time.Duration
}

// Pressure is the content of a pressure file. Full is nil if the kernel does not report it: for
// the CPU of a host before Linux 5.13.
type Pressure struct{ Some, Full *Stall }

// Parse reads a pressure file. Its form:
//
//	some avg10=0.00 avg60=0.66 avg300=0.69 total=226403120
//	full avg10=0.00 avg60=0.61 avg300=0.61 total=70195444
func Parse(text string) (Pressure, error) {
	var p Pressure
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var to **Stall
		switch name {
		case "some":
			to = &p.Some
		case "full":
			to = &p.Full
		default:
			continue // a later kernel may tell more
		}
		s, err := parseStall(rest)
		if err != nil || *to != nil {
			return Pressure{}, trimtab.Invalidf("pressure line %.80q", line)
		}
		*to = &s
	}
	if p.Some == nil {
		return Pressure{}, trimtab.Invalidf("pressure %.80q: no line of some", text)
	}
	return p, nil
}

func parseStall(text string) (s Stall, err error) {
	totals := 0
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		var to *float64
		switch name {
		case "avg10":
			to = &s.Avg10
		case "avg60":
			to = &s.Avg60
		case "avg300":
			to = &s.Avg300
		case "total":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil || n > math.MaxInt64/1000 {
				return Stall{}, trimtab.Invalidf("%.40q", field)
			}
			s.Total = time.Duration(n) * time.Microsecond
			totals++
			continue
		default:
			continue
		}
		if *to, err = strconv.ParseFloat(value, 64); err != nil || !(*to >= 0 && *to <= 100) {
			return Stall{}, trimtab.Invalidf("%.40q: want percents", field)
		}
	}
	if totals != 1 {
		return Stall{}, trimtab.Invalidf("%.80q: want one total", text)
	}
	return s, nil
}
