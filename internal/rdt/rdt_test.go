package rdt_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/internal/rdt"
)

func TestALineThatIsWrittenReadsBackAsItself(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := rdt.Line{Name: rapid.SampledFrom([]string{"L3", "L3CODE", "MB", "SMBA", "L2"}).Draw(r, "name")}
		for _, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 1<<30), 1, 8, rapid.ID[int]).Draw(r, "domains") {
			l.Domains = append(l.Domains, rdt.Domain{ID: id, Value: rapid.Uint64().Draw(r, "value")})
		}
		s, err := rdt.ParseSchemata("  " + l.String())
		if err != nil || len(s) != 1 || !s.Line(l.Name).Equal(&l) {
			r.Fatalf("%q: %v, %v", l.String(), s, err)
		}
	})
}

func TestMonitorsThatHaveNoNumberSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		"Unavailable\n": "unavailable", "Error\n": "error", "Unassigned\n": "unassigned", "": "unreadable", "-1": "unreadable", "1e3": "unreadable",
		"18446744073709551615": "unreadable", "0\n": "",
	} {
		if v, missing := rdt.ParseMonitor(text); missing != want || v != 0 {
			t.Errorf("%q: %d, %q, want %q", text, v, missing, want)
		}
	}
}

func FuzzParsersAreTotal(f *testing.F) {
	for _, s := range []string{
		"    MB:0= 100;1= 100\n    L3:0=fffff;1=fffff\n", "L3DATA:0=fffff\nL3CODE:0=3c0\n", "L3:uninitialized\n", "MB:0=4294967295\n",
		"L3:0=1;0=2\n", ":0=1", "L3:", "L3:1=;", "Unavailable\n", "7ff\n", "L3:0=1048576\n", "MB:0=2048;1=  16\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := rdt.ParseSchemata(text); err == nil {
			again := ""
			for i := range s {
				if len(s[i].Domains) == 0 {
					t.Fatalf("%q: %q without a domain", text, s[i].Name)
				}
				again += s[i].String()
			}
			if back, err := rdt.ParseSchemata(again); err != nil || len(back) != len(s) {
				t.Fatalf("%q printed as %q: %v, %v", text, again, back, err)
			}
		}
		_, _ = rdt.ParseMask(text)
		if n, err := rdt.ParseCount(text); err == nil && n > 1<<32 {
			t.Fatalf("%q: %d", text, n)
		}
		if v, missing := rdt.ParseMonitor(text); missing != "" && v != 0 {
			t.Fatalf("%q: %d and %q", text, v, missing)
		}
	})
}
