package poll_test

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

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

// files is a source: the host has a value, and each group that of its file.
type files struct {
	poll.Simple
	root string
	err  error
}

func (f *files) source() poll.Source {
	return poll.Source{Name: "files", Interval: time.Second, Quantities: []quantity.Quantity{quantity.Power, quantity.Usage}, Open: func(poll.Config) (poll.Reader, error) { return f, nil }}
}

func (f *files) Read(_ context.Context, groups []poll.Group) (all []*trimtab.Sample, _ error) {
	host := poll.OfHost(quantity.Power, "")
	host.Value, host.Window = 7, 2
	all = append(all, host)
	if f.err != nil {
		host.Missing = poll.Unreadable
		return all, f.err
	}
	for _, g := range groups {
		s := g.Sample(quantity.Usage)
		if _, err := fmt.Sscan(text(filepath.Join(f.root, g.Path, "value")), &s.Value); err != nil {
			s.Missing = poll.Unreadable
		}
		all = append(all, s)
	}
	return all, nil
}

func text(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

// box counts samples.
type box int

func (b *box) Publish(context.Context, trimtab.Value) error { *b++; return nil }

func (f *files) put(t *testing.T, group, value string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Join(f.root, group), 0o755), os.WriteFile(filepath.Join(f.root, group, "value"), []byte(value), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestHostGroupsAndInstancesAreToldAndWhatGoesIsToldOnce(t *testing.T) {
	f := &files{root: t.TempDir()}
	f.put(t, "web@a", "1")
	f.put(t, "web@b", "2")
	p := polltest.Open(t, f.source(), poll.Config{Root: f.root, Targets: []poll.Target{{Workload: "web", Host: "h", Path: "web@*"}, {Workload: "one", Path: "one"}}})
	round := func(what string, want map[string]any) {
		t.Helper()
		if diff := cmp.Diff(want, p.Next()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	const host, a, b = ".host/h/ power", "web/h/a usage", "web/h/b usage"
	round("at first", map[string]any{host: 7.0, a: 1.0, b: 2.0})
	f.put(t, "one", "3")
	f.put(t, "web@b", "x")
	round("one came", map[string]any{host: 7.0, a: 1.0, b: poll.Unreadable, "one// usage": 3.0})
	f.err = errors.New("EIO")
	round("what cannot be read is not gone", map[string]any{host: poll.Unreadable, a: poll.Unreadable, b: poll.Unreadable, "one// usage": poll.Unreadable})
	if err := os.RemoveAll(filepath.Join(f.root, "web@b")); err != nil {
		t.Fatal(err)
	}
	f.err = nil
	round("one went", map[string]any{host: 7.0, a: 1.0, b: poll.Absent, "one// usage": 3.0})
	round("and is told no more", map[string]any{host: 7.0, a: 1.0, "one// usage": 3.0})
}

func TestItReadsAtEachIntervalUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		p, err := poll.Open((&files{}).source(), poll.Config{Host: "h", Bus: &b})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := p.Run(ctx); err != nil || b != 3 {
			t.Errorf("%d samples, %v", b, err)
		}
	})
}

// woken has a group that must not wait for the next round.
type woken struct {
	files
	c chan string
}

func (w *woken) Woken() <-chan string { return w.c }

func (w *woken) Early(path string) (poll.Group, []*trimtab.Sample) {
	g := poll.Group{Workload: path}
	if path == "gone" {
		return g, nil
	}
	return g, []*trimtab.Sample{g.Sample(quantity.Usage)}
}

func TestAGroupThatCannotWaitIsSeenBeforeTheNextRoundAndNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		var seen []string
		w := &woken{c: make(chan string)}
		s := poll.Source{Name: "files", Prompt: true, Interval: time.Second, Open: func(poll.Config) (poll.Reader, error) { return w, nil }}
		p, err := poll.Open(s, poll.Config{Host: "h", Bus: &b, Repeat: -1, Seen: func(_ []poll.Group, all []*trimtab.Sample) { seen = append(seen, all[0].Workload) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		go func() { w.c <- "gone"; w.c <- "full" }()
		if err := p.Run(ctx); err != nil || b != 2 {
			t.Errorf("%d samples, %v", b, err)
		}
		if diff := cmp.Diff([]string{trimtab.HostItself, "full", trimtab.HostItself}, seen); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAHostWithoutANameOrASourceIsAnError(t *testing.T) {
	if _, err := poll.Open((&files{}).source(), poll.Config{Bus: new(box)}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("without a name: %v", err)
	}
	none := poll.Source{Name: "none", Open: func(poll.Config) (poll.Reader, error) { return nil, fmt.Errorf("not here: %w", trimtab.ErrUnsupported) }}
	if _, err := poll.Open(none, poll.Config{Host: "h", Bus: new(box)}); !errors.Is(err, trimtab.ErrUnsupported) || err.Error() != "read none: not here: unsupported" {
		t.Errorf("not on this host: %v", err)
	}
}
