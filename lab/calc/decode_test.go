package calc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestEveryMistakeInTheInputIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		run      Func
		in, want string
	}{
		{NJC, `{"capacity": 1, "demands": [1], "demand": 2}`, `1:33: unknown field "demand"`},
		{NJC, `{"Capacity": 1, "demands": [1]}`, `1:2: unknown field "Capacity"`},
		{NJC, "{\"capacity\": 1,\n \"demands\": [1, \"2\"]}", `2:17: want a number, not "2"`},
		{NJC, `{"capacity": null, "demands": [1]}`, `1:14: want a number, not null`},
		{NJC, `{"capacity": 1}`, `1:1: "demands" is missing`},
		{NJC, `{"capacity": 1, "capacity": 1, "demands": []}`, `1:17: "capacity" stands here a second time`},
		{NJC, `{"capacity": 1e999, "demands": []}`, `1:14: 1e999 is out of range`},
		{NJC, `{"capacity": NaN, "demands": []}`, `1:14: invalid character 'N'`},
		{NJC, `{"capacity": 1, "demands": []} {}`, `1:32: data after the end`},
		{NJC, `{"capacity": 1, "demands": {}}`, `1:28: want a list, not an object`},
		{NJC, `[]`, `1:1: want an object, not a list`},
		{NJC, `{"capacity": 1, "demands": [`, `1:29: the input ends too early`},
		{NJC, ``, `1:1: the input ends too early`},
		{NJC, `{"capacity": 1, "demands": [1, -1]}`, `row 1: demand -1`},
		{NJC, `{"capacity": 1, "demands": [1], "weights": [0]}`, `row 0: weight 0`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}}, {"demand": {"1": 1}}]}`, `row 1: unknown resource 1`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"00": 1}}]}`, `row 0: resource "00"`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": -1}}]}`, `row 0: `},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "weight": "2"}]}`, `1:64: want a number or an object`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "weight": null}]}`, ``},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "weight": 0}]}`, `row 0: `},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "weight": {"0": 0}}]}`, `row 0: weight 0 of resource 0`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "weight": {"0": null}}]}`, `1:64: want a number or an object`},
		{EDRF, `{"capacities": [1], "tenants": [{"demand": {"0": 1}, "limit": -1}]}`, `row 0: `},
		{EDRF, `{"capacities": [-1], "tenants": []}`, `capacity -1`},
		{EDRF, `{"tenants": []}`, `1:1: "capacities" is missing`},
		{EDRF, `{"capacities": ` + strings.Repeat("[", 100), `want a number, not a list`},
	} {
		_, err := c.run(strings.NewReader(c.in))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.in, err)
			}
			continue
		}
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n %v, want %s", c.in, err, c.want)
		}
	}
}

func TestAFailingReaderIsNotTheInputsFault(t *testing.T) {
	_, err := NJC(io.MultiReader(strings.NewReader("{"), errReader{}))
	if errors.Is(err, trimtab.ErrInvalid) || !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// fuzz holds that whatever is read ends in an error that is ErrInvalid, or in
// numbers that JSON can write.
func fuzz(f *testing.F, run Func, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := run(strings.NewReader(in))
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if _, err := json.Marshal(out); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzNJC(f *testing.F) {
	fuzz(f, NJC, `{"capacity": 60, "demands": [10, 40, 100]}`, `{"capacity": 1e308, "demands": [1e308, 1e308], "weights": [1e-300, 1]}`, `{`, `{"capacity":null}`)
}

func FuzzEDRF(f *testing.F) {
	fuzz(f, EDRF, `{"capacities": [9, 18], "tenants": [{"demand": {"0": 1, "1": 4}}, {"demand": {"0": 3, "1": 1}, "limit": 0.5, "weight": {"0": 2}}]}`,
		`{"capacities": [0, 1e308], "tenants": [{"demand": {"0": 1e-308, "1": 1e308}, "weight": 1e-300}]}`, `{"capacities": []}`)
}

func TestWhatTheCommandsPrintIsFinite(t *testing.T) {
	out, err := EDRF(strings.NewReader(`{"capacities": [9, 18], "tenants": [{"demand": {"0": 1, "1": 4}}, {"demand": {"0": 3, "1": 1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out.(edrfOutput).Share {
		if math.Abs(x-2.0/3) > 1e-12 {
			t.Errorf("share %v, want 2/3", x)
		}
	}
}

func TestNoMistakeIsToldAtGreatLength(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	for _, in := range []string{
		`{"` + long + `": 1}`, `{"capacity": "` + long + `"}`, `{"capacity": 1` + long + `}`, `{"capacity": 1, "demands": [` + long + `]}`,
		`{"capacity": 1e` + long + `}`, `{"` + long + `": 1, "` + long + `": 1}`,
	} {
		if _, err := NJC(strings.NewReader(in)); !errors.Is(err, trimtab.ErrInvalid) || len(err.Error()) > 500 {
			t.Errorf("%.30s…: %.600v", in, err)
		}
	}
	if _, err := EDRF(strings.NewReader(`{"capacities": [1], "tenants": [{"demand": {"` + long + `": 1}}]}`)); err == nil || len(err.Error()) > 500 {
		t.Errorf("%.600v", err)
	}
}

func TestATableOfManyColumnsIsReadInOnePass(t *testing.T) {
	var header, row strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&header, ",resource%d", i)
		row.WriteString(",1")
	}
	done := make(chan error, 1)
	go func() {
		_, err := ReadTable(strings.NewReader("tenant" + header.String() + "\ncapacity" + row.String() + "\n"))
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(60 * time.Second): // minutes where each name is compared with all others
		t.Fatal("still reading")
	}
}
