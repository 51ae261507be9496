package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/quantity"
)

// rawLeaf speaks the protocol of leaf nodes with the certificate of a user. A
// leaf node of nats-server keeps to its permissions by itself; this does not.
type rawLeaf struct {
	*testing.T
	conn  *tls.Conn
	lines *bufio.Scanner
}

func (f *fleet) rawLeaf(u user) *rawLeaf {
	f.Helper()
	at := filepath.Join(f.dir, u.dir())
	pair, err := tls.LoadX509KeyPair(filepath.Join(at, "cert.pem"), filepath.Join(at, "key.pem"))
	if err != nil {
		f.Fatal(err)
	}
	plain, err := net.Dial("tcp", strings.TrimPrefix(f.leaf, "tls://"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { plain.Close() })
	// The server speaks before TLS begins. One byte at a time: what follows the
	// line is TLS's.
	for b := []byte{0}; b[0] != '\n'; {
		if _, err := plain.Read(b); err != nil {
			f.Fatal(err)
		}
	}
	c := tls.Client(plain, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		f.Fatal(err)
	}
	l := &rawLeaf{T: f.T, conn: c, lines: bufio.NewScanner(c)}
	l.lines.Buffer(nil, 1<<20)
	l.send(`CONNECT {"verbose":false,"tls_required":true,"name":"raw","server_id":"raw","version":"2.15.2","headers":true,"protocol":1,"remote_account":"$G"}`)
	return l
}

func (l *rawLeaf) send(lines ...string) {
	l.Helper()
	// The server may have closed the link: what it said before can still be read.
	_, _ = io.WriteString(l.conn, strings.Join(lines, "\r\n")+"\r\n")
}

// answer sends lines and returns what the server says until it answers a ping
// or closes the link.
func (l *rawLeaf) answer(lines ...string) (said []string) {
	l.Helper()
	l.send(append(lines, "PING")...)
	for l.lines.Scan() {
		text := strings.TrimRight(l.lines.Text(), "\r")
		if text == "PONG" {
			return said
		}
		if text == "PING" {
			l.send("PONG")
		}
		said = append(said, text)
	}
	return append(said, "closed")
}

// refused tells whether the server refuses that a leaf node of u sends a message.
func (f *fleet) refused(u user, subject string) bool {
	f.Helper()
	said := strings.Join(f.rawLeaf(u).answer("LMSG "+subject+" 2", "{}"), "\n")
	no := strings.Contains(said, "Permissions Violation for Publish")
	if !no && strings.Contains(said, "closed") {
		f.Errorf("%s sends to %s: the link ends without a reason: %s", u.name(), subject, said)
	}
	return no
}

// S1 again, of a leaf node that minds no permissions.
func TestALeafNodeIsHeldToTheRoleOfItsHost(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "")
	u := user{natsbus.Agent, "h1"}
	mine, theirs := natsbus.ConsumerOf("h1", "p", f.secrets()["h1"]), natsbus.ConsumerOf("h2", "p", f.secrets()["h2"])
	for subject, want := range map[string]bool{
		"trimtab.sample.w": false, "trimtab.holding.p=2Fh1": false, "trimtab.outcome.p=2Fh1": false, "trimtab.unreadable.plan": false,
		"trimtab.holding.p=2Fh2": true, "trimtab.outcome.p=2Fh2": true, "trimtab.holding.other=2Fh1": true,
		"trimtab.plan.p": true, "trimtab.estimate.w": true, "trimtab.command.p": true, "trimtab.alert.w": true, "trimtab.spans.0": true, "trimtab.sketch.w": true,
		"$KV.leaders.p": true, "$JS.trimtab.API.$KV.leaders.p": true,
		"$JS.trimtab.API.DIRECT.GET.KV_leaders.$KV.leaders.p":                     false,
		"$JS.trimtab.API.$KV.thresholds.p=2Fh1":                                   false,
		"$JS.trimtab.API.$KV.thresholds.p=2Fh2":                                   true,
		"$JS.trimtab.API.DIRECT.GET.KV_thresholds.$KV.thresholds.p=2Fh2":          true,
		"$JS.trimtab.API.CONSUMER.MSG.NEXT.PLANS." + mine:                         false,
		"$JS.trimtab.API.CONSUMER.MSG.NEXT.PLANS." + theirs:                       true,
		"$JS.trimtab.API.CONSUMER.DELETE.PLANS." + theirs:                         true,
		"$JS.trimtab.API.CONSUMER.CREATE.PLANS." + theirs + ".trimtab.plan.p":     true,
		"$JS.trimtab.API.CONSUMER.CREATE.OUTCOMES." + mine + ".trimtab.outcome.>": true,
		"$JS.trimtab.API.CONSUMER.NAMES.PLANS":                                    true,
		"$JS.trimtab.API.STREAM.CREATE.PLANS":                                     true,
		"$JS.trimtab.API.STREAM.PURGE.PLANS":                                      true,
		"$JS.API.STREAM.DELETE.PLANS":                                             true,
		"$JS.API.CONSUMER.MSG.NEXT.PLANS." + theirs:                               true,
		"_INBOX_planner.x": true, "_INBOX_agent_h2.x": true, "$SYS.REQ.SERVER.PING": true, "anything": true,
	} {
		if got := f.refused(u, subject); got != want {
			t.Errorf("to %s: refused %t, want %t", subject, got, want)
		}
	}
}

// A server takes acknowledgements from any leaf node: whoever knew the name could
// make another host miss its plans.
func TestTheConsumerOfAHostCannotBeGuessedByAnother(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "")
	agent := f.opened(natsbus.Agent, "h2")
	stop, err := agent.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Key: "p", Consumer: natsbus.GroupOf("h2"),
		Handle: func(context.Context, bus.Delivery) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	js := f.peer(user{natsbus.Agent, "h2"}).js
	if _, err := js.Consumer(t.Context(), "PLANS", natsbus.ConsumerOf("h2", "p", f.secrets()["h2"])); err != nil {
		t.Errorf("no consumer with the secret in its name: %v", err)
	}
	if s := f.secrets(); len(s["h1"]) != 24 || s["h1"] == s["h2"] {
		t.Errorf("secrets %q", s)
	}
	if said := strings.Join(f.rawLeaf(user{natsbus.Agent, "h1"}).answer("LMSG $JS.ACK.PLANS.x.1.1.1.1.1 4", "+ACK"), "\n"); strings.Contains(said, "Violation") {
		t.Error("this version of nats-server checks acknowledgements: the secret is needed no longer")
	}
}

func TestALeafNodeHearsWhatItsRoleHears(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	planner := f.opened(natsbus.Planner, "")
	l := f.rawLeaf(user{natsbus.Agent, "h1"})
	l.answer("LS+ >", "LS+ trimtab.>", "LS+ _INBOX_planner.>", "LS+ _INBOX_agent_h2.>", "LS+ _INBOX_agent_h1.>", "LS+ $JS.>", "LS+ $KV.>")
	if err := planner.Publish(t.Context(), values()[trimtab.KindPlan]); err != nil {
		t.Fatal(err)
	}
	b, err := planner.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "p", []byte("1")); err != nil {
		t.Fatal(err)
	}
	f.opened(natsbus.Agent, "h2") // which is told a lot
	// It gets the answer to its own question, so messages do arrive.
	for heard := []string(nil); len(heard) == 0; {
		for _, line := range l.answer("LMSG $JS.trimtab.API.STREAM.INFO.PLANS _INBOX_agent_h1.x 0", "") {
			subject, is := strings.CutPrefix(line, "LMSG ")
			if !is {
				if line == "closed" {
					t.Fatal("the link ended")
				}
				continue
			}
			heard = append(heard, subject)
			if !strings.HasPrefix(subject, "_INBOX_agent_h1.x ") {
				t.Errorf("it hears %s", subject)
			}
		}
	}
}

func TestNobodyButAnAgentJoinsAsALeafNode(t *testing.T) {
	f := startFleet(t, nil)
	for _, u := range f.spec.users() {
		said := strings.Join(f.rawLeaf(u).answer(), "\n")
		if joined := !strings.Contains(said, "closed"); joined != (u.role == natsbus.Agent) {
			t.Errorf("%s joins: %t: %s", u.name(), joined, said)
		}
	}
}

// link carries TCP to an address until it is cut.
type link struct {
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	open     map[net.Conn]bool
}

func newLink(t *testing.T, to string) (*link, string) {
	t.Helper()
	l := &link{open: map[net.Conn]bool{}}
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.listener.Close(); l.set(true) })
	go func() {
		for {
			c, err := l.listener.Accept()
			if err != nil {
				return
			}
			go l.carry(c, to)
		}
	}()
	return l, l.listener.Addr().String()
}

func (l *link) carry(c net.Conn, to string) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		c.Close()
		return
	}
	l.mu.Lock()
	l.open[c], l.open[far] = true, true
	cut := l.cut
	l.mu.Unlock()
	if !cut {
		go func() { _, _ = io.Copy(far, c); far.Close(); c.Close() }()
		_, _ = io.Copy(c, far)
	}
	far.Close()
	c.Close()
}

// set cuts the link, or makes it whole.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for c := range l.open {
			c.Close()
		}
		clear(l.open)
	}
}

// What a cut leaf node measures is for its own host: it does not arrive later, as
// if it were new. What was stored for it meanwhile does.
func TestACutLeafNodeJoinsAgainAndReplaysNothing(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	l, address := newLink(t, strings.TrimPrefix(f.leaf, "tls://"))
	f.leaf, f.asLeaf = "tls://"+address, true
	planner, analyzer, agent := f.opened(natsbus.Planner, ""), f.opened(natsbus.Analyzer, ""), f.opened(natsbus.Agent, "h1")
	var mu sync.Mutex
	var samples []float64
	var plans []uint64
	subscribe := func(b *natsbus.Bus, s bus.Subscription, note func(trimtab.Value)) {
		s.Handle = func(_ context.Context, d bus.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			note(d.Value)
			return nil
		}
		stop, err := b.Subscribe(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	subscribe(analyzer, bus.Subscription{Kind: trimtab.KindSample}, func(v trimtab.Value) { samples = append(samples, v.(*trimtab.Sample).Value) })
	subscribe(agent, bus.Subscription{Kind: trimtab.KindPlan, Key: "p", Consumer: natsbus.GroupOf("h1"), MaxAge: time.Hour}, func(v trimtab.Value) { plans = append(plans, v.(*trimtab.Plan).Sequence) })
	measure := func(v float64) {
		t.Helper()
		if err := agent.Publish(t.Context(), &trimtab.Sample{Workload: "w", Source: "s", Quantity: quantity.Load, Time: time.Now(), Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	last := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		if len(samples) == 0 {
			return -1
		}
		return samples[len(samples)-1]
	}
	plan := *values()[trimtab.KindPlan].(*trimtab.Plan)
	for round := range 3 {
		before, during, after := float64(3*round), float64(3*round+1), float64(3*round+2)
		f.eventually("what is measured arrives", func() error {
			measure(before)
			if got := last(); got != before {
				return fmt.Errorf("the last is %v", got)
			}
			return agent.Ready()
		})
		l.set(true)
		f.eventually("the agent says that it is cut off", func() error {
			if agent.Ready() == nil {
				return fmt.Errorf("it says nothing")
			}
			return nil
		})
		for range 100 {
			measure(during)
		}
		plan.Sequence = uint64(round + 1)
		if err := planner.Publish(t.Context(), &plan); err != nil {
			t.Fatal(err)
		}
		l.set(false)
		f.eventually("it joins again", agent.Ready)
		f.eventually("what is measured now arrives", func() error {
			measure(after)
			if got := last(); got != after {
				return fmt.Errorf("the last is %v", got)
			}
			return nil
		})
		f.eventually("the plan arrives", func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(plans) != round+1 || plans[round] != plan.Sequence {
				return fmt.Errorf("plans %v", plans)
			}
			return nil
		})
		f.eventually("it can answer", func() error { return agent.Publish(t.Context(), values()[trimtab.KindHolding]) })
		mu.Lock()
		for _, v := range samples {
			if v == during {
				t.Error("what was measured while the link was cut arrived later")
			}
		}
		mu.Unlock()
	}
}
