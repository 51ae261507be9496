package poll_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/quantity"
)

// meter is a source: a file in which a meter at the plug writes the watts that the host draws.
type meter struct {
	poll.Simple
	path string
}

// Source is the value that the list of sources gets. The configuration asks for it with
// measure: {sources: {meter: /run/meter/watts}}.
func Source() poll.Source {
	return poll.Source{
		Name: "meter", About: "what the host draws at the plug", Interval: 10 * time.Second,
		Quantities: []quantity.Quantity{quantity.Power},
		Key:        poll.Sources, Check: checkMeter, Open: openMeter,
	}
}

// checkMeter refuses what is no path, with a hint.
func checkMeter(setting string) (hint string, err error) {
	if !filepath.IsAbs(setting) {
		return "write the whole path of the file", errors.New("the path of the meter is not absolute")
	}
	return "", nil
}

// openMeter probes: a host without the file has no meter, which is no mistake.
func openMeter(c poll.Config) (poll.Reader, error) {
	m := &meter{path: c.Settings[0]}
	if _, err := os.Stat(m.path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no meter at %s (start its daemon): %w", m.path, trimtab.ErrUnsupported)
	}
	return m, nil
}

// Read judges nothing: what cannot be read is missing, with the reason, and never 0.
func (m *meter) Read(context.Context, []poll.Group) ([]*trimtab.Sample, error) {
	s := poll.OfHost(quantity.Power, "plug")
	b, err := os.ReadFile(m.path)
	if err == nil {
		s.Value, err = strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	}
	if err != nil || !(s.Value >= 0 && s.Value <= 1e6) {
		s.Value, s.Missing = 0, poll.Unreadable
	}
	return []*trimtab.Sample{s}, nil
}

func TestTheMeterMeetsTheContractOfSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watts")
	for text, want := range map[string]any{"125\n": 125.0, "": poll.Unreadable, "NaN\n": poll.Unreadable, "-3": poll.Unreadable} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := polltest.Open(t, Source(), poll.Config{Settings: []string{path}})
		if got := m.Next()[".host/h/plug power"]; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if _, err := poll.Open(Source(), poll.Config{Host: "h", Bus: new(box), Settings: []string{path + ".none"}}); err == nil {
		t.Error("a meter that is not there was opened")
	}
}
