package collector_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
)

// loadFile is a collector: a file in which a service counts its requests per
// second.
type loadFile struct {
	Bus            bus.Bus
	Workload, Path string
}

// Run publishes a sample at every interval until ctx ends.
func (c *loadFile) Run(ctx context.Context, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		// A sample may be lost; what comes next matters more.
		_ = c.Bus.Publish(ctx, c.measure(time.Now().UTC()))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// measure reads and judges nothing: what cannot be read is missing, with the
// reason, and never 0.
func (c *loadFile) measure(now time.Time) *trimtab.Sample {
	s := &trimtab.Sample{Workload: c.Workload, Quantity: trimtab.Load, Source: "loadfile", Time: now}
	b, err := os.ReadFile(c.Path)
	if err != nil {
		s.Missing = "unreadable"
		return s
	}
	if s.Value, err = strconv.ParseFloat(strings.TrimSpace(string(b)), 64); err != nil || !(s.Value >= 0 && s.Value <= 1e12) {
		s.Value, s.Missing = 0, "not a number >= 0"
	}
	return s
}

func Example() {
	dir, err := os.MkdirTemp("", "collector")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	b := bustest.NewMemory()
	defer b.Close()
	got := make(chan *trimtab.Sample, 3)
	stop, err := b.Subscribe(context.Background(), bus.Subscription{Kind: trimtab.KindSample, For: "example", Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value.(*trimtab.Sample)
		return nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c := &loadFile{Bus: b, Workload: "checkout", Path: filepath.Join(dir, "load")}
	for _, text := range []string{"", "125\n", "NaN\n"} {
		if text != "" {
			if err := os.WriteFile(c.Path, []byte(text), 0o600); err != nil {
				fmt.Println(err)
				return
			}
		}
		if err := b.Publish(context.Background(), c.measure(time.Unix(0, 0).UTC())); err != nil {
			fmt.Println(err)
			return
		}
		s := <-got
		v, ok := s.Get()
		fmt.Printf("%s %s %v %v %q\n", s.Workload, s.Quantity, v, ok, s.Missing)
	}
	// Output:
	// checkout load 0 false "unreadable"
	// checkout load 125 true ""
	// checkout load 0 false "not a number >= 0"
}
