//go:build integration

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// corePlayer plays for three quarters of a minute what `make interop-core` has installed, with a
// trimtab of this tree.
func corePlayer(t *testing.T) *player {
	t.Helper()
	h, err := open("../../..", os.Getenv("TRIMTAB_INTEROP"))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "trimtab")
	if out, err := exec.Command("go", "build", "-gcflags=all=-dwarf=false", "-o", binary, "../../../cmd/trimtab").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return &player{home: h, trimtab: binary, during: 45 * time.Second}
}

// TestTheSpansOfRealSendersAreRead plays senders with the defaults of their
// libraries. The page docs/interop.md has the figures of all of them.
func TestTheSpansOfRealSendersAreRead(t *testing.T) {
	t.Parallel()
	p := corePlayer(t)
	for _, s := range senders() {
		if !s.Core {
			continue
		}
		t.Run(strings.ReplaceAll(s.Name, " ", ""), func(t *testing.T) {
			t.Parallel()
			if err := p.home.ready(&s); err != nil {
				t.Skip(err)
			}
			o := p.play(t.Context(), s)
			if o.Missing != nil {
				t.Fatal(o.Missing)
			}
			t.Logf("sent %+v, %d spans; counted %+v", o.Sent, o.Spans, o.Counted)
			if o.Sent.Failed > 0 || o.Sent.Requests == 0 {
				t.Errorf("the service answered %d requests and failed %d", o.Sent.Requests, o.Sent.Failed)
			}
			// The polls of its last, unfinished batch are still with the sender.
			if late := 12.; o.Counted.Accepted < float64(o.Spans)-late {
				t.Errorf("%.0f of %d spans were read", o.Counted.Accepted, o.Spans)
			}
			if len(o.Counted.Refused) > 0 {
				t.Errorf("refused: %v", o.Counted.Refused)
			}
			// Spans come 5 s at a time, and polls are no requests.
			if math.Abs(o.Counted.Load-o.Sent.Rate) > 1 {
				t.Errorf("load %.4g, %.4g to %.4g, of %.4g requests a second", o.Counted.Load, o.Counted.Least, o.Counted.Most, o.Sent.Rate)
			}
		})
	}
}

func TestTheSeriesOfARealServerAreRead(t *testing.T) {
	t.Parallel()
	p := corePlayer(t)
	p.during = 10 * time.Second
	for _, s := range scrapers() {
		if !s.Core {
			continue
		}
		t.Run(strings.ReplaceAll(s.Name, " ", ""), func(t *testing.T) {
			t.Parallel()
			if _, err := p.home.program(s.Debian, s.Module); err != nil {
				t.Skip(err)
			}
			o := p.scrape(t.Context(), s)
			if o.Missing != nil {
				t.Fatal(o.Missing)
			}
			if c := o.Counted; c.Read == 0 || c.Read < c.Loads || c.Least < rate-1 || c.Most > rate+1 {
				t.Errorf("the service counts %d requests a second, load %.4g, %.4g to %.4g, in %d of %d readings; answers %v", int(rate), c.Load, c.Least, c.Most, c.Read, c.Loads, c.Samples)
			}
		})
	}
}

func TestTheWebhooksOfARealNotifierAreTaken(t *testing.T) {
	t.Parallel()
	p := corePlayer(t)
	for _, n := range notifiers() {
		if !n.Core {
			continue
		}
		t.Run(strings.ReplaceAll(n.Name, " ", ""), func(t *testing.T) {
			t.Parallel()
			if _, err := p.home.program(n.Debian, ""); err != nil {
				t.Skip(err)
			}
			o := p.notify(t.Context(), n)
			if o.Missing != nil {
				t.Fatal(o.Missing)
			}
			if !o.Fired || !o.Resolved || o.Alerts["published"] != 2 || len(o.Webhooks) > 1 {
				t.Errorf("an alert fired and was over: messages %v, alerts %v", o.Webhooks, o.Alerts)
			}
		})
	}
}

// ready says why a sender cannot run as it is installed; nil: it can.
func (h *home) ready(s *sender) error {
	dir, args := s.command(h)
	for _, file := range []string{dir, args[0]} {
		if file == "node" {
			if _, err := exec.LookPath("node"); err != nil {
				return fmt.Errorf("find Node.js: %w", err)
			}
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("find %s, which make interop-core or make interop installs: %w", s.Name, err)
		}
	}
	return nil
}
