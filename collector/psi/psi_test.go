package psi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

// blank is a sample without a value.
func blank(q quantity.Quantity) *trimtab.Sample {
	return &trimtab.Sample{Workload: "w", Quantity: q, Time: time.Unix(1, 0)}
}

// files writes pressure files: each has waited so long.
func files(t *testing.T, dir, suffix string, some, full int) {
	t.Helper()
	for _, r := range resources() {
		text := fmt.Sprintf("some avg10=1.00 avg60=2.00 avg300=3.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", some, full)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, r.name+suffix), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPressureIsTheShareOfTheIntervalThatTasksWaited(t *testing.T) {
	at := func(s int, some, full time.Duration) *reading {
		return &reading{Pressure{&Stall{Total: some}, &Stall{Total: full}}, time.Duration(s) * time.Second}
	}
	short := at(4, time.Second, 0)
	short.Full = nil
	for _, c := range []struct {
		name          string
		before, after *reading
		err           error
		want          map[quantity.Quantity]any
	}{
		{"shares", at(0, time.Second, 0), at(4, 3*time.Second, time.Second), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: 0.5, quantity.PressureCPUFull: 0.25}},
		{"nobody waited", at(0, time.Second, 0), at(4, time.Second, 0), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: 0.0, quantity.PressureCPUFull: 0.0}},
		{"more than the interval", at(0, 0, 0), at(1, 2*time.Second, 0), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: 1.0, quantity.PressureCPUFull: 0.0}},
		{"the first", nil, at(4, 0, 0), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: poll.First, quantity.PressureCPUFull: poll.First}},
		{"a counter that fell", at(0, time.Second, 0), at(4, 0, 0), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: poll.Reset, quantity.PressureCPUFull: 0.0}},
		{"at the same time", at(4, 0, 0), at(4, 1, 1), nil, map[quantity.Quantity]any{quantity.PressureCPUSome: poll.Reset, quantity.PressureCPUFull: poll.Reset}},
		{"gone", at(0, 0, 0), nil, os.ErrNotExist, map[quantity.Quantity]any{quantity.PressureCPUSome: poll.Absent, quantity.PressureCPUFull: poll.Absent}},
		{"unreadable", at(0, 0, 0), nil, errors.New("EIO"), map[quantity.Quantity]any{quantity.PressureCPUSome: poll.Unreadable, quantity.PressureCPUFull: poll.Unreadable}},
		{"a kernel without full", at(0, 0, 0), short, nil, map[quantity.Quantity]any{quantity.PressureCPUSome: 0.25}},
	} {
		got := map[quantity.Quantity]any{}
		for _, s := range samples(blank, resources()[0], c.before, c.after, c.err) {
			got[s.Quantity] = s.Value
			if s.Missing != "" {
				got[s.Quantity] = s.Missing
			}
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestHostGroupsAndInstancesAreToldAndGoneIsToldOnce(t *testing.T) {
	pressure, root := t.TempDir(), t.TempDir()
	files(t, pressure, "", 1000, 0)
	files(t, filepath.Join(root, "plain"), ".pressure", 0, 0)
	files(t, filepath.Join(root, "web@a"), ".pressure", 0, 0)
	c := polltest.Open(t, from(pressure), poll.Config{Root: root, Targets: []poll.Target{{Workload: "p", Path: "plain"}, {Workload: "w", Host: "h", Path: "web@*"}}})
	for name, v := range c.Next() {
		if v != poll.First {
			t.Errorf("%s: %v", name, v)
		}
	}
	got := c.Next()
	for _, want := range []string{".host/h/ pressure_cpu_some", "p// pressure_io_full", "w/h/a pressure_memory_some"} {
		if got[want] != 0.0 {
			t.Errorf("%s: %v", want, got[want])
		}
	}
	if len(got) != 18 {
		t.Errorf("%d values", len(got))
	}
	if err := os.RemoveAll(filepath.Join(root, "web@a")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []any{poll.Absent, nil} {
		if got := c.Next()["w/h/a pressure_cpu_some"]; got != want {
			t.Errorf("gone: %v, want %v", got, want)
		}
	}
}

func TestAHostWithoutPressureSaysSo(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nowhere")} {
		if _, err := poll.Open(from(dir), poll.Config{Host: "h", Bus: nowhere{}}); !errors.Is(err, trimtab.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
	}
}

func TestTheRealPressureOfThisHostIsRead(t *testing.T) {
	p, err := poll.Open(Source(), poll.Config{Host: "h", Bus: nowhere{}})
	if errors.Is(err, trimtab.ErrUnsupported) {
		t.Skipf("this host has none: %v", err)
	}
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	c := polltest.Open(t, Source(), poll.Config{})
	c.Next()
	for name, v := range c.Next() {
		if name == ".host/h/ pressure_cpu_full" {
			if v != unreported {
				t.Errorf("%s: %v", name, v)
			}
			continue
		}
		if share, ok := v.(float64); !ok || share < 0 || share > 1 {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func TestEverySampleValidates(t *testing.T) {
	draw := rapid.Custom(func(r *rapid.T) *reading {
		stall := func(name string) *Stall { return &Stall{Total: time.Duration(rapid.Int64Min(0).Draw(r, name))} }
		return &reading{Pressure{stall("some"), stall("full")}, time.Duration(rapid.Int64Min(0).Draw(r, "at"))}
	})
	rapid.Check(t, func(r *rapid.T) {
		for _, s := range samples(blank, resources()[1], draw.Draw(r, "before"), draw.Draw(r, "after"), nil) {
			if err := s.Validate(); err != nil || s.Value > 1 {
				r.Fatal(s, err)
			}
		}
	})
}

func FuzzParseIsTotal(f *testing.F) {
	for _, s := range []string{
		"some avg10=0.00 avg60=0.66 avg300=0.69 total=226403120\nfull avg10=0.00 avg60=0.61 avg300=0.61 total=70195444\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "full total=1", "some total=18446744073709551615", "some avg10=NaN total=1", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		for _, s := range []*Stall{p.Some, p.Full} {
			if s != nil && (s.Total < 0 || !(s.Avg10 >= 0 && s.Avg60 >= 0 && s.Avg300 >= 0)) {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}

// Since Linux 5.13 /proc/pressure/cpu has a line of full, so that programs find one: zeros,
// whatever happens. The files here are as the kernel writes them.
func TestFullCPUPressureOfAWholeHostIsMissingAndNotZero(t *testing.T) {
	pressure, root := t.TempDir(), t.TempDir()
	files(t, pressure, "", 1000, 0)
	files(t, filepath.Join(root, "plain"), ".pressure", 1000, 0)
	c := polltest.Open(t, from(pressure), poll.Config{Root: root, Targets: []poll.Target{{Workload: "p", Path: "plain"}}})
	c.Next()
	got := c.Next()
	for name, want := range map[string]any{
		".host/h/ pressure_cpu_full": unreported, ".host/h/ pressure_cpu_some": 0.0,
		".host/h/ pressure_memory_full": 0.0, "p// pressure_cpu_full": 0.0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
