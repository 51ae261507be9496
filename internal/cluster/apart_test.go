package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/hint"
)

// said is a log in memory.
type said struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *said) lines(with string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.out.String()) {
		if strings.Contains(line, with) {
			all = append(all, line)
		}
	}
	return all
}

// saysWhatIsCutOff returns an error where one does not say, in words, what is cut
// off, what goes on meanwhile, and what to do.
func saysWhatIsCutOff(err error, address string) error {
	if err == nil {
		return errors.New("it says nothing")
	}
	for _, want := range []string{"cut off from the NATS servers at tls://" + address, "keeps what the last plan gave until its lease ends", "its baselines come back"} {
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("it does not say %q: %w", want, err)
		}
	}
	if h := hint.Of(err); !strings.Contains(h, "is nats-server up") || !strings.Contains(h, "Nothing needs a restart") {
		return fmt.Errorf("its hint is %q: %w", h, err)
	}
	if strings.Contains(err.Error(), "no responders") || strings.Contains(err.Error(), "make stream") {
		return fmt.Errorf("it says what only a programmer reads: %w", err)
	}
	return nil
}

// Whether an agent is a leaf node or a client: readiness, the log, and those that
// publish or wait for plans all get the same sentence, and the log has it once. The
// secret in the name of its consumer is not in the log.
func TestAnAgentThatIsCutOffSaysWhatGoesOnAndWhatToDo(t *testing.T) {
	t.Parallel()
	for name, asLeaf := range map[string]bool{"leaf node": true, "client": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, nil)
			f.opened(natsbus.Planner, "")
			at := &f.url
			if asLeaf {
				at = &f.leaf
			}
			l, address := newLink(t, strings.TrimPrefix(*at, "tls://"))
			log := &said{}
			*at, f.asLeaf, f.logger = "tls://"+address, asLeaf, slog.New(slog.NewTextHandler(log, nil))
			agent := f.opened(natsbus.Agent, "h1")
			var mu sync.Mutex
			var trouble error
			stop, err := agent.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Key: "p", Consumer: natsbus.GroupOf("h1"),
				Handle:  func(context.Context, bus.Delivery) error { return nil },
				Trouble: func(err error) { mu.Lock(); defer mu.Unlock(); trouble = err }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)

			l.set(true)
			f.eventually("readiness says it", func() error { return saysWhatIsCutOff(agent.Ready(), address) })
			f.eventually("who waits for plans is told", func() error {
				mu.Lock()
				defer mu.Unlock()
				return saysWhatIsCutOff(trouble, address)
			})
			soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := saysWhatIsCutOff(agent.Publish(soon, values()[trimtab.KindHolding]), address); err != nil {
				t.Errorf("who publishes: %v", err)
			}
			if err := saysWhatIsCutOff(agent.Unstored(trimtab.KindHolding), address); err != nil {
				t.Errorf("who asks why nothing is stored: %v", err)
			}
			if told := log.lines("cut off from"); len(told) != 1 || !strings.Contains(told[0], "hint=") || !strings.Contains(told[0], "kind=plan") {
				t.Errorf("the log has %q", told)
			}
			for _, not := range []string{"no responders", f.secrets()["h1"]} {
				if told := log.lines(not); len(told) > 0 {
					t.Errorf("the log has %q", told)
				}
			}
			l.set(false)
			f.eventually("it is whole again", agent.Ready)
		})
	}
}
