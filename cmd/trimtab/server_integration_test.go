//go:build integration

package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
)

// serveBus starts a NATS server as a process of its own, which outlives the
// program that uses it; before is what its command line begins with.
func (p *program) serveBus(address string, before ...string) {
	p.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		p.Fatal(err)
	}
	cmd := clustertest.Process(before, "-a", host, "-p", port, "-js", "-sd", filepath.Join(p.dir, "nats"))
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.text = strings.ReplaceAll(p.text, fmt.Sprintf("nats: {listen: %q}", p.nats), fmt.Sprintf("nats: {url: %q}", "nats://"+address))
	p.nats = address
	p.until("the NATS server", func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// stored reads what a stream has.
func (p *program) stored(stream string, kind trimtab.Kind) (values []trimtab.Value) {
	p.Helper()
	conn, err := nats.Connect("nats://" + p.nats)
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		p.Fatal(err)
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		p.Fatal(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		p.Fatal(err)
	}
	for uint64(len(values)) < info.State.Msgs {
		m, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			p.Fatalf("%s: %d of %d: %v", stream, len(values), info.State.Msgs, err)
		}
		v, _, err := codec.Decode(kind, m.Data())
		if err != nil {
			p.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// stepOf names one step of a plan.
func stepOf(epoch, sequence uint64, step int) string {
	return fmt.Sprint(trimtab.PlanID(epoch, sequence), " step ", step)
}

// accounts compares the plans that were stored with the answers, once the program has ended.
// The newest may have been made while it ended, and then needs none.
func (p *program) accounts() (answered, written int) {
	p.Helper()
	plans := p.stored("PLANS", trimtab.KindPlan)
	answered, written, open := account(p.T, plans, p.stored("OUTCOMES", trimtab.KindOutcome))
	newest := plans[len(plans)-1].(*trimtab.Plan)
	for _, id := range open {
		if id != stepOf(newest.Epoch, newest.Sequence, newest.Step) {
			p.Errorf("%s was never answered", id)
		}
	}
	return answered, written
}

// account compares plans with their answers: no effect was had twice, none after the
// lease of its plan, and none after one of a later epoch. It returns how many plans
// were answered, the writes, and the plans that ask for something and have no answer.
func account(p *testing.T, all, outcomes []trimtab.Value) (answered, written int, open []string) {
	p.Helper()
	plans := map[string]*trimtab.Plan{}
	for _, v := range all {
		plan := v.(*trimtab.Plan)
		plans[stepOf(plan.Epoch, plan.Sequence, plan.Step)] = plan
	}
	answers, effects, newest := map[string]bool{}, map[string]bool{}, map[string]uint64{}
	for _, v := range outcomes {
		o := v.(*trimtab.Outcome)
		id := stepOf(o.Epoch, o.Sequence, o.Step)
		plan := plans[id]
		if plan == nil {
			p.Errorf("%s was answered and is not stored", id)
			continue
		}
		answers[id] = true
		for _, r := range o.Results {
			if r.Status != trimtab.Written {
				continue // one that is answered again after a kill finds what it wrote
			}
			written++
			if newest[o.Host] = max(newest[o.Host], o.Epoch); o.Epoch < newest[o.Host] {
				p.Errorf("%s was carried out after a plan of epoch %d: %+v", id, newest[o.Host], o)
			}
			if effect := id + fmt.Sprint(r.KnobID); effects[effect] {
				p.Errorf("%s was carried out twice: %+v", id, o)
			} else {
				effects[effect] = true
			}
			if o.Time.Sub(plan.Time) > plan.Lease.Duration() {
				p.Errorf("%s was carried out %v after it was made, with a lease of %v", id, o.Time.Sub(plan.Time), plan.Lease.Duration())
			}
		}
	}
	for id, plan := range plans {
		if !answers[id] && len(plan.Actions) > 0 {
			open = append(open, id)
		}
	}
	return len(answers), written, open
}

// signal sends a signal to the program alone, not to its watchdogs.
func (p *program) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}
