package main

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestAMeanIsComparedWithTheBandOfBefore(t *testing.T) {
	c := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}},
		{Allocation: 0.2, Band: trimtab.Band{Lower: 0.8, Mean: 0.9, Upper: 1}},
	}}
	report := func(performance, allocation, load float64) observation {
		return observation{time.Time{}, allocation, load, performance}
	}
	for _, x := range []struct {
		name         string
		curve        *trimtab.Curve
		reports      []observation
		inside, near int
		of           int
	}{
		{name: "in the band", curve: c, reports: []observation{report(0.8, 0.2, 10), report(1, 0.2, 10)}, inside: 1, near: 1, of: 1},
		{name: "weighted by requests", curve: c, reports: []observation{report(0, 0.2, 1), report(0.9, 0.2, 19)}, inside: 1, near: 1, of: 1},
		{name: "by its noise", curve: c, reports: []observation{report(0.75, 0.2, 10)}, near: 1, of: 1},
		{name: "far off", curve: c, reports: []observation{report(0.1, 0.2, 10)}, of: 1},
		{name: "at half the load half is enough", curve: c, reports: []observation{report(0.9, 0.1, 5)}, inside: 1, near: 1, of: 1},
		{name: "no curve", reports: []observation{report(0.1, 0.2, 10)}},
		{name: "no report", curve: c},
		{name: "no request", curve: c, reports: []observation{report(0.9, 0.2, 0)}},
	} {
		var b bands
		if b.compare(x.curve, x.reports); b.Inside != x.inside || b.Near != x.near || b.Of != x.of {
			t.Errorf("%s: %d in the band and %d near it of %d, want %d, %d, %d", x.name, b.Inside, b.Near, b.Of, x.inside, x.near, x.of)
		}
	}
}
