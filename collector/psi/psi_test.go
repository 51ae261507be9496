package psi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// outlet keeps the samples.
type outlet struct{ all []*trimtab.Sample }

func (o *outlet) Publish(_ context.Context, v trimtab.Value) error {
	s := v.(*trimtab.Sample)
	o.all = append(o.all, s)
	return s.Validate()
}

// take returns what came since the last call, by workload, instance and quantity.
func (o *outlet) take() map[string]any {
	out := map[string]any{}
	for _, s := range o.all {
		name := fmt.Sprintf("%s/%s/%s %s", s.Workload, s.Host, s.Instance, s.Quantity)
		out[name] = s.Value
		if s.Missing != "" {
			out[name] = s.Missing
		}
	}
	o.all = nil
	return out
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
		want          map[trimtab.Quantity]any
	}{
		{"shares", at(0, time.Second, 0), at(4, 3*time.Second, time.Second), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: 0.5, trimtab.PressureCPUFull: 0.25}},
		{"nobody waited", at(0, time.Second, 0), at(4, time.Second, 0), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: 0.0, trimtab.PressureCPUFull: 0.0}},
		{"more than the interval", at(0, 0, 0), at(1, 2*time.Second, 0), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: 1.0, trimtab.PressureCPUFull: 0.0}},
		{"the first", nil, at(4, 0, 0), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: first, trimtab.PressureCPUFull: first}},
		{"a counter that fell", at(0, time.Second, 0), at(4, 0, 0), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: reset, trimtab.PressureCPUFull: 0.0}},
		{"at the same time", at(4, 0, 0), at(4, 1, 1), nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: reset, trimtab.PressureCPUFull: reset}},
		{"gone", at(0, 0, 0), nil, os.ErrNotExist, map[trimtab.Quantity]any{trimtab.PressureCPUSome: absent, trimtab.PressureCPUFull: absent}},
		{"unreadable", at(0, 0, 0), nil, errors.New("EIO"), map[trimtab.Quantity]any{trimtab.PressureCPUSome: unreadable, trimtab.PressureCPUFull: unreadable}},
		{"a kernel without full", at(0, 0, 0), short, nil, map[trimtab.Quantity]any{trimtab.PressureCPUSome: 0.25}},
	} {
		got := map[trimtab.Quantity]any{}
		for _, s := range samples(trimtab.Sample{Workload: "w", Time: time.Unix(1, 0)}, resources()[0], c.before, c.after, c.err) {
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
	o := &outlet{}
	c, err := Open(Config{Pressure: pressure, Host: "h", Root: root, Bus: o, Targets: []Target{{Workload: "p", Path: "plain"}, {Workload: "w", Host: "h", Path: "web@*"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.round(t.Context())
	for name, v := range o.take() {
		if v != first {
			t.Errorf("%s: %v", name, v)
		}
	}
	c.round(t.Context())
	got := o.take()
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
	for _, want := range []any{absent, nil} {
		c.round(t.Context())
		if got := o.take()["w/h/a pressure_cpu_some"]; got != want {
			t.Errorf("gone: %v, want %v", got, want)
		}
	}
}

func TestItReadsAtEachIntervalUntilItsEnd(t *testing.T) {
	pressure := t.TempDir()
	files(t, pressure, "", 0, 0)
	synctest.Test(t, func(t *testing.T) {
		o := &outlet{}
		c, err := Open(Config{Pressure: pressure, Host: "h", Bus: o, Interval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(2500 * time.Millisecond)
		cancel()
		if err := <-done; err != nil || len(o.all) != 3*6 {
			t.Errorf("%d samples, %v", len(o.all), err)
		}
	})
}

func TestAHostWithoutPressureSaysSo(t *testing.T) {
	if _, err := Open(Config{Pressure: t.TempDir(), Host: "h", Bus: &outlet{}}); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	if _, err := Open(Config{Pressure: filepath.Join(t.TempDir(), "nowhere"), Host: "h", Bus: &outlet{}}); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

func TestTheRealPressureOfThisHostIsRead(t *testing.T) {
	o := &outlet{}
	c, err := Open(Config{Host: "h", Bus: o})
	if errors.Is(err, trimtab.ErrUnsupported) {
		t.Skipf("this host has none: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.round(t.Context())
	c.round(t.Context())
	for name, v := range o.take() {
		if name == ".host/h/ pressure_cpu_full" {
			if v != untold {
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
		for _, s := range samples(trimtab.Sample{Workload: "w", Time: time.Unix(1, 0)}, resources()[1], draw.Draw(r, "before"), draw.Draw(r, "after"), nil) {
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
	o := &outlet{}
	c, err := Open(Config{Pressure: pressure, Host: "h", Root: root, Bus: o, Targets: []Target{{Workload: "p", Path: "plain"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.round(t.Context())
	o.take()
	c.round(t.Context())
	got := o.take()
	for name, want := range map[string]any{
		".host/h/ pressure_cpu_full": untold, ".host/h/ pressure_cpu_some": 0.0,
		".host/h/ pressure_memory_full": 0.0, "p// pressure_cpu_full": 0.0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
