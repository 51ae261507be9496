package calc

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestATableOfDemandsIsDividedAsThePaperDoes(t *testing.T) {
	table, err := ReadTable(strings.NewReader("# Ghodsi et al., NSDI 2011, figure 3\ntenant,weight,limit,cpu,memory\ncapacity,,,9,18\nA,1,,1,4\nB,,,3,1\nC,1,1,0,0.001\nidle,,,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Solve()
	if err != nil {
		t.Fatal(err)
	}
	got, want := s.Tenants, []Row{{Tenant: "A", Share: 2.0 / 3, Bound: "cpu"}, {Tenant: "B", Share: 2.0 / 3, Bound: "cpu"}, {Tenant: "C", Bound: "limit"}, {Tenant: "idle", Bound: "nothing"}}
	for i := range want {
		if got[i].Tenant != want[i].Tenant || got[i].Bound != want[i].Bound || math.Abs(got[i].Share-want[i].Share) > 1e-3 {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if len(s.Saturated) != 1 || s.Saturated[0] != "cpu" || math.Abs(s.Used["cpu"]-1) > 1e-12 {
		t.Errorf("saturated %v, used %v", s.Saturated, s.Used)
	}
}

func TestMistakesInATableAreNamedWithTheirPlace(t *testing.T) {
	for in, want := range map[string]string{
		"":                                        "1:1: the table is empty",
		"name,cpu\n":                              `1:1: the first column is "name"`,
		"tenant,cpu,cpu\n":                        `1:12: a second column "cpu"`,
		"tenant,cpu,\n":                           "1:12: a column without a name",
		"tenant,cpu\na,1\n":                       `no row is named "capacity"`,
		"tenant,cpu\ncapacity,\n":                 "2:10: a capacity is missing",
		"tenant,cpu\ncapacity,1\na,-1\n":          `3:3: demand "-1"`,
		"tenant,cpu\ncapacity,1\na,NaN\n":         `3:3: demand "NaN"`,
		"tenant,cpu\ncapacity,1\na,1e999\n":       `3:3: demand "1e999"`,
		"tenant,cpu\ncapacity,1\na,1\na,2\n":      `4:1: "a" stands here a second time`,
		"tenant,weight,cpu\ncapacity,,1\na,0,1\n": "3:3: weight 0",
		"tenant,limit,cpu\ncapacity,,1\na,x,1\n":  `3:3: limit "x"`,
		"tenant,cpu\ncapacity,1,2\n":              "2:1: wrong number of fields",
		"tenant,cpu\ncapacity,\"1\n":              "extraneous or missing",
	} {
		_, err := ReadTable(strings.NewReader(in))
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("tenant,weight,limit,cpu,memory\ncapacity,,,9,18\nA,1,,1,4\nB,,0.5,3,1\n")
	f.Add("tenant,cpu\ncapacity,1e308\na,1e-308\nb,1e308\n")
	f.Add("tenant\ncapacity\n")
	f.Fuzz(func(t *testing.T, in string) {
		table, err := ReadTable(strings.NewReader(in))
		var s Shares
		if err == nil {
			s, err = table.Solve()
		}
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}
