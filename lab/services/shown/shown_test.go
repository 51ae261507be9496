package shown

import (
	"testing"

	"github.com/trimtab/trimtab"
)

func TestAWindowIsComparedWithTheBandAtItsAllocationAndLoad(t *testing.T) {
	c := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}},
		{Allocation: 0.2, Band: trimtab.Band{Lower: 0.8, Mean: 0.9, Upper: 1}},
	}}
	for _, x := range []struct {
		name  string
		curve *trimtab.Curve
		w     Window
		want  Tally
	}{
		{"in the band", c, Window{Requests: 100, InTime: 90, Allocation: 0.2}, Tally{Of: 1, Inside: 1}},
		{"as far as the noise of few requests", c, Window{Requests: 100, InTime: 76, Allocation: 0.2}, Tally{Of: 1, Inside: 1}},
		{"far off", c, Window{Requests: 100, InTime: 10, Allocation: 0.2}, Tally{Of: 1}},
		{"at half the load half is enough", c, Window{Requests: 50, InTime: 46, Allocation: 0.1}, Tally{Of: 1, Inside: 1}},
		{"while a queue grows", c, Window{Requests: 100, InTime: 10, Allocation: 0.2, Open: [2]float64{0, 20}}, Tally{Moving: 1}},
		{"a queue that stays", c, Window{Requests: 100, InTime: 10, Allocation: 0.2, Open: [2]float64{20, 24}}, Tally{Of: 1}},
		{"no curve", nil, Window{Requests: 100}, Tally{}},
		{"no request", c, Window{}, Tally{}},
	} {
		var got Tally
		x.w.Seconds = Every
		got.Add(x.curve, x.w)
		if got.Width = 0; got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

func TestAServiceMayHaveWhatOthersLeaveAndNoLessThanItIsSureOf(t *testing.T) {
	if a, b := Effective(0.2, 1, 0.3), Effective(0.2, 1, 0.9); a != 0.7 || b != 0.2 {
		t.Errorf("%v where others leave 0.7, %v where they leave 0.1", a, b)
	}
}
