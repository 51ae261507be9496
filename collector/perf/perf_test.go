package perf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/quantity"
)

// The hardware part runs on readings that are made up in the form of perf_event_open(2):
// this project has had no machine with counters that it may use.

// buffer is what the kernel would give of a group of counters.
func buffer(numbers ...uint64) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	return b
}

func TestAReadingIsOfAsManyCountersAsWereOpened(t *testing.T) {
	r, err := parseReading(buffer(3, 1000, 500, 7, 8, 9), 3)
	if diff := cmp.Diff(reading{1000, 500, []uint64{7, 8, 9}}, r, cmp.AllowUnexported(reading{})); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	for name, b := range map[string][]byte{
		"nothing, as of a CPU that went": nil, "cut": buffer(3, 1000, 500, 7, 8), "too long": buffer(3, 1, 1, 7, 8, 9, 10),
		"another number": buffer(2, 1, 1, 7, 8, 9), "half a number": buffer(3, 1, 1, 7, 8, 9)[:45],
	} {
		if _, err := parseReading(b, 3); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARiseIsScaledByTheTimeThatWasCounted(t *testing.T) {
	at := func(enabled, running uint64, counts ...uint64) reading { return reading{enabled, running, counts} }
	for name, c := range map[string]struct {
		before, after []reading
		want          set
	}{
		"counted all the time":      {[]reading{at(0, 0, 0), at(5, 5, 1)}, []reading{at(100, 100, 30), at(105, 105, 11)}, set{Counts: []float64{40}}},
		"counted half of the time":  {[]reading{at(0, 0, 0)}, []reading{at(100, 50, 30)}, set{Counts: []float64{60}}},
		"each CPU by its own time":  {[]reading{at(0, 0, 0), at(0, 0, 0)}, []reading{at(100, 50, 30), at(100, 25, 10)}, set{Counts: []float64{100}}},
		"one CPU as the others":     {[]reading{at(0, 0, 0), at(0, 0, 0)}, []reading{at(100, 100, 30), at(100, 0, 0)}, set{Counts: []float64{60}}},
		"nothing ran":               {[]reading{at(7, 7, 3)}, []reading{at(7, 7, 3)}, set{Counts: []float64{0}}},
		"never counted":             {[]reading{at(0, 0, 0)}, []reading{at(100, 0, 0)}, set{Missing: multiplexed}},
		"counted for too little":    {[]reading{at(0, 0, 0)}, []reading{at(100, 9, 1)}, set{Missing: multiplexed}},
		"a count that fell":         {[]reading{at(0, 0, 9)}, []reading{at(100, 100, 8)}, set{Missing: poll.Reset}},
		"a time that fell":          {[]reading{at(9, 0, 0)}, []reading{at(8, 0, 0)}, set{Missing: poll.Reset}},
		"a counter that wrapped":    {[]reading{at(0, 0, math.MaxUint64)}, []reading{at(9, 9, 1)}, set{Missing: poll.Reset}},
		"the first":                 {nil, []reading{at(9, 9, 1)}, set{Missing: poll.First}},
		"another CPU came":          {[]reading{at(0, 0, 0)}, []reading{at(9, 9, 1), at(9, 9, 1)}, set{Missing: poll.First}},
		"more running than enabled": {[]reading{at(0, 0, 0)}, []reading{at(10, 12, 5)}, set{Counts: []float64{5}}},
	} {
		if diff := cmp.Diff(c.want, rise(c.before, c.after, 1)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestARiseIsNeverLessThanWhatWasCountedAndAlwaysFinite(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string) []reading {
			return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) reading {
				n := rapid.SliceOfN(rapid.Uint64(), 5, 5).Draw(r, "numbers")
				return reading{n[0], n[1], n[2:]}
			}), 0, 3).Draw(r, name)
		}
		before, after := draw("before"), draw("after")
		s := rise(before, after, 3)
		if (s.Missing == "") != (len(s.Counts) == 3) {
			r.Fatalf("%+v", s)
		}
		for i, v := range s.Counts {
			raw := 0.0
			for cpu := range after {
				raw += float64(after[cpu].counts[i] - before[cpu].counts[i])
			}
			if !(v >= raw*(1-1e-9)) || math.IsInf(v, 0) {
				r.Fatalf("%v, counted %v", v, raw)
			}
		}
	})
}

func TestCPIAndMPKIAreOfTheSameInstructions(t *testing.T) {
	soft := set{Counts: []float64{5e8, 30, 20, 10}}
	for name, c := range map[string]struct {
		i         interval
		cpi, mpki any
	}{
		"counted":                    {interval{time.Second, soft, set{Counts: []float64{3e9, 2e9, 4e6, 8e6}}}, 1.5, 2.0},
		"no references":              {interval{time.Second, soft, set{Counts: []float64{3e9, 2e9, 4e6}}}, 1.5, 2.0},
		"no misses are counted":      {interval{time.Second, soft, set{Counts: []float64{3e9, 2e9}}}, 1.5, notCounted},
		"no hardware counters":       {interval{time.Second, soft, set{Missing: notCounted}}, notCounted, notCounted},
		"a machine that counts 0":    {interval{time.Second, soft, set{Counts: []float64{0, 0, 0}}}, notCounted, notCounted},
		"nothing ran":                {interval{time.Second, set{Counts: []float64{0, 0, 0, 0}}, set{Counts: []float64{0, 0, 0}}}, Idle, Idle},
		"too many groups to be read": {failed(tooMany), tooMany, tooMany},
	} {
		got := map[quantity.Quantity]any{}
		for _, m := range values(c.i, false) {
			got[m.q] = m.v
			if m.missing != "" {
				got[m.q] = m.missing
			}
		}
		if got[quantity.CPI] != c.cpi || got[quantity.MPKI] != c.mpki {
			t.Errorf("%s: %v", name, got)
		}
		if rpki, counted := got[quantity.RPKI].(float64); counted != (name == "counted") || counted && rpki != 4 {
			t.Errorf("%s: %v references", name, got[quantity.RPKI])
		}
		if c.i.Software.Missing == "" && len(c.i.Software.Counts) == 4 && c.i.Software.Counts[0] > 0 && (got[quantity.TaskClock] != 0.5 || got[quantity.ContextSwitches] != 30.0 || got[quantity.PageFaults] != 20.0 || got[quantity.Migrations] != 10.0) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, m := range values(failed(poll.Absent), true) {
		if m.q == quantity.TaskClock {
			t.Error("a host has a task clock")
		}
	}
}

func TestEverySampleIsValidWhateverTheProcessAnswers(t *testing.T) {
	able := Ability{Software: names(software()), Hardware: names(hardware())}
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string, n int) set {
			if rapid.Bool().Draw(r, name+" missing") {
				return set{Missing: rapid.SampledFrom(append(reasons(), "", "other")).Draw(r, name+" why")}
			}
			return set{Counts: rapid.SliceOfN(rapid.Float64(), n-1, n).Draw(r, name)}
		}
		i := interval{time.Duration(rapid.Int64().Draw(r, "window")), draw("software", 4), draw("hardware", len(hardware()))}
		a := answer{Seq: 1, Groups: []interval{i}}
		if a.validate(request{1, []group{{}}}, able) != nil {
			return
		}
		for _, s := range samples(poll.Group{Workload: "w"}, i, value{v: 0.5}, time.Second) {
			s.Time = time.Unix(1, 0)
			if s.Missing != "" {
				s.Value, s.Window = 0, 0
			}
			if err := s.Validate(); err != nil {
				r.Fatal(s, err)
			}
		}
	})
}

func TestAMessageOfAnyLengthIsReadOrRefused(t *testing.T) {
	read := func(text string) error {
		var q request
		return readMessage(lines(strings.NewReader(text)), &q)
	}
	for text, want := range map[string]bool{
		`{"seq":1,"groups":[{"path":"a","id":2}]}` + "\n": true,
		`{"seq":1}`: false, "": false, "null\n": true, "{]\n": false, `{"other":1}` + "\n": false, "{} {}\n": false,
		strings.Repeat(" ", 2*maxLine): false, strings.Repeat(" ", maxLine) + "{}\n": false,
	} {
		if err := read(text); (err == nil) != want {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if err := writeMessage(&bytes.Buffer{}, strings.Repeat("x", maxLine)); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("too long a message: %v", err)
	}
}

func TestRunDelayIsTheShareOfWaitingOfThreadsThatStayed(t *testing.T) {
	before := map[int]waits.Thread{1: {Ran: 100, Waited: 10}, 2: {Ran: 100, Waited: 10}, 3: {Ran: 1000, Waited: 1000}, 4: {Ran: 1, Waited: 1}}
	after := map[int]waits.Thread{1: {Ran: 400, Waited: 110}, 2: {Ran: 100, Waited: 10}, 3: {Ran: 5, Waited: 5}, 5: {Ran: 1e9, Waited: 1e9}}
	if got := delay(before, after); got != (value{v: 0.25}) {
		t.Errorf("%+v", got)
	}
	if got := delay(nil, after); got.missing != poll.First {
		t.Errorf("the first: %+v", got)
	}
	if got := delay(after, after); got.missing != Idle {
		t.Errorf("nothing ran: %+v", got)
	}
}

func FuzzParseReadingIsTotal(f *testing.F) {
	f.Add(buffer(3, 1000, 500, 7, 8, 9), 3)
	f.Add(buffer(1, math.MaxUint64, 0, 7), 1)
	f.Add([]byte{1, 2, 3}, 0)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 64 {
			return
		}
		r, err := parseReading(b, n)
		if err == nil && (len(r.counts) != n || !bytes.Equal(b, buffer(append([]uint64{uint64(n), r.enabled, r.running}, r.counts...)...))) {
			t.Errorf("%x: %+v", b, r)
		}
	})
}
