package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/topic"
)

// TestMain lets more tests run side by side than there are processors: they wait for
// servers that elect a leader and links that come back. -parallel says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// fleet is a real NATS server with the files of `trimtab init cluster`.
type fleet struct {
	*testing.T
	dir  string
	spec Spec
	// url is for clients, leaf for leaf nodes.
	url, leaf string
	// replicas is how many servers keep a stream; 0: one.
	replicas int
	// asLeaf makes agents leaf nodes.
	asLeaf bool
	// logger gets what buses that are opened from now on say; nil: nobody.
	logger *slog.Logger
}

func (f *fleet) secrets() map[string]string {
	f.Helper()
	all, err := f.spec.secrets(f.dir)
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// eventually tries until there is no error.
func (f *fleet) eventually(what string, try func() error) {
	f.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func startFleet(t *testing.T, change func(conf string) string) *fleet {
	t.Helper()
	f := &fleet{T: t, dir: t.TempDir(), spec: Spec{Servers: []string{"127.0.0.1"}, Hosts: []string{"h1", "h2"}, Pool: "p"}}
	if err := f.spec.Write(f.dir); err != nil {
		t.Fatal(err)
	}
	f.url, f.leaf = clustertest.Serve(t, f.dir, "127.0.0.1", change)
	return f
}

// bus opens the bus as a role does; host is that of an agent.
func (f *fleet) bus(r natsbus.Role, host string) (*natsbus.Bus, error) {
	at := filepath.Join(f.dir, user{r, host}.dir())
	c := natsbus.Config{URL: f.url, Source: string(r) + host, Role: r, Host: host, Pool: f.spec.Pool, Replicas: f.replicas, Logger: f.logger,
		CA: filepath.Join(at, "ca.pem"), Cert: filepath.Join(at, "cert.pem"), Key: filepath.Join(at, "key.pem")}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if f.asLeaf && r == natsbus.Agent {
		c.Leaf = f.leaf
	}
	b, err := natsbus.Open(f.Context(), c)
	if err == nil {
		f.Cleanup(func() { b.Close() })
	}
	return b, err
}

func (f *fleet) opened(r natsbus.Role, host string) *natsbus.Bus {
	f.Helper()
	b, err := f.bus(r, host)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// peer is a connection with the certificate of a user, and what it was denied.
type peer struct {
	*testing.T
	conn *nats.Conn
	js   jetstream.JetStream
	mu   sync.Mutex
	no   []string
}

func (f *fleet) peer(u user) *peer {
	f.Helper()
	p := &peer{T: f.T}
	at := filepath.Join(f.dir, u.dir())
	var err error
	p.conn, err = nats.Connect(f.url, nats.RootCAs(filepath.Join(at, "ca.pem")), nats.ClientCert(filepath.Join(at, "cert.pem"), filepath.Join(at, "key.pem")),
		nats.CustomInboxPrefix(natsbus.Inbox(u.role, u.host)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.no = append(p.no, err.Error())
		}))
	if err != nil {
		f.Fatalf("%s: %v", u.name(), err)
	}
	f.Cleanup(p.conn.Close)
	if p.js, err = jetstream.New(p.conn); err != nil {
		f.Fatal(err)
	}
	return p
}

// denied runs what sends one thing, and tells whether the server refused it.
func (p *peer) denied(what func() error) bool {
	p.Helper()
	p.mu.Lock()
	p.no = nil
	p.mu.Unlock()
	if err := what(); err != nil {
		p.Fatal(err)
	}
	// A refusal is sent before the answer to the ping.
	if err := p.conn.FlushTimeout(10 * time.Second); err != nil {
		p.Fatal(err)
	}
	// Errors are handed over by another goroutine, in order: this one is behind.
	told := make(chan struct{})
	last, err := p.conn.SubscribeSync("not.for.anybody." + nats.NewInbox())
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = last.Unsubscribe() }()
	go func() {
		defer close(told)
		for {
			p.mu.Lock()
			n := slices.ContainsFunc(p.no, func(s string) bool { return strings.Contains(s, last.Subject) })
			p.mu.Unlock()
			if n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		p.Fatal("the server refuses nothing")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.no) > 1
}

func (p *peer) publish(subject string) bool {
	p.Helper()
	return p.denied(func() error { return p.conn.Publish(subject, []byte("{}")) })
}

func (p *peer) subscribe(subject string) bool {
	p.Helper()
	return p.denied(func() error {
		s, err := p.conn.SubscribeSync(subject)
		if err == nil {
			p.Cleanup(func() { _ = s.Unsubscribe() })
		}
		return err
	})
}

// S1: six roles and every subject, stream and bucket of the table, asked of a
// real server. What a role may is read from the columns of the table, not from
// the permissions that are made of them.
func TestARoleIsDeniedEverythingThatTheTableDoesNotGiveIt(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "") // makes the streams
	tried, wrong := 0, 0
	for _, u := range f.spec.users() {
		p := f.peer(u)
		check := func(what string, denied, want bool) {
			t.Helper()
			tried++
			if denied != want {
				wrong++
				t.Errorf("%s: %s: denied %t, want %t", u.name(), what, denied, want)
			}
		}
		own := func(subject string) bool {
			other := map[string]string{"h1": "h2", "h2": "h1"}[u.host]
			return other == "" || !strings.HasSuffix(subject, other)
		}
		for _, row := range natsbus.Table() {
			writes, reads := slices.Contains(row.Publish, u.role), slices.Contains(row.Read, u.role)
			if row.Bucket {
				if row.Name == "(others)" {
					row.Name = "anything"
				}
				stream, keys := "KV_"+row.Name, []string{"k"}
				if row.Name == natsbus.BucketThresholds { // an agent has that of its own host only
					keys = []string{"p=2Fh1", "p=2Fh2"}
				}
				for _, k := range keys {
					check("put "+k+" into bucket "+row.Name, p.publish("$KV."+row.Name+"."+k), !writes || !own(k))
					check("read "+k+" of bucket "+row.Name, p.publish("$JS.API.DIRECT.GET."+stream+".$KV."+row.Name+"."+k), !writes && !reads || !own(k))
				}
				row.Name, row.Subjects = stream, "$KV."+row.Name+".>"
				reads = false // of a bucket nobody makes a consumer
			}
			if !row.Bucket {
				subjects := []string{strings.TrimSuffix(row.Subjects, "*") + "x"}
				switch row.Kind {
				case "": // each role puts aside what it reads
					subjects = nil
					for _, k := range natsbus.Table() {
						if k.Unreadable != "" {
							check("put aside "+string(k.Kind), p.publish(k.Unreadable), !slices.Contains(k.Read, u.role))
						}
					}
				case trimtab.KindHolding:
					subjects = []string{"trimtab.holding.p=2Fh1", "trimtab.holding.p=2Fh2"}
				case trimtab.KindOutcome:
					subjects = []string{"trimtab.outcome.p=2Fh1", "trimtab.outcome.p=2Fh2"}
				case colocation.KindColocation:
					subjects = []string{"trimtab.colocation.p=2Fbest-effort=2Fh1", "trimtab.colocation.p=2Fbest-effort=2Fh2"}
				case speculation.KindMachine:
					subjects = []string{"trimtab.machine.p=2Fh1", "trimtab.machine.p=2Fh2"}
				case speculation.KindPlacements: // an agent hears those of its own host only
					for _, s := range []string{"trimtab.placements.p=2Fh1", "trimtab.placements.p=2Fh2"} {
						check("subscribe to "+s, p.subscribe(s), u.role != natsbus.Observer && (u.role != natsbus.Agent || !own(s)))
					}
					reads = false
				}
				for _, s := range subjects {
					check("publish "+s, p.publish(s), !writes || !own(s))
				}
				core := row.Name == ""
				check("subscribe to "+row.Subjects, p.subscribe(row.Subjects), u.role != natsbus.Observer && (!core || !reads))
			}
			if row.Name == "" {
				continue
			}
			type place struct{ host, key string }
			places := []place{{}, {"h1", "p"}, {"h2", "p"}}
			if row.Kind == trimtab.KindPart { // for one host
				places = []place{{}, {"h1", "p/h1"}, {"h2", "p/h2"}}
			}
			for _, at := range places {
				host, name, filter := at.host, "mine", row.Subjects
				if host != "" {
					name, filter = natsbus.ConsumerOf(host, at.key, f.secrets()[host]), bus.Subject(row.Kind, at.key)
				}
				// UNREADABLE is for people, who look at it with the server's own tools.
				may := reads && row.Kind != "" && (u.role == natsbus.Agent) == (host != "") && u.host == host
				if host != "" && row.Kind != trimtab.KindPlan && row.Kind != trimtab.KindPart && row.Kind != trimtab.KindCommand {
					continue
				}
				check("make consumer "+name+" of "+row.Name, p.publish("$JS.API.CONSUMER.CREATE."+row.Name+"."+name+"."+filter), !may)
				check("take from consumer "+name+" of "+row.Name, p.publish("$JS.API.CONSUMER.MSG.NEXT."+row.Name+"."+name), !may)
				check("remove consumer "+name+" of "+row.Name, p.publish("$JS.API.CONSUMER.DELETE."+row.Name+"."+name), !may)
				check("acknowledge for consumer "+name+" of "+row.Name, p.publish("$JS.ACK."+row.Name+"."+name+".1.1.1.1.1"), !may)
			}
			for call, may := range map[string]bool{"CREATE": u.role == natsbus.Planner, "UPDATE": u.role == natsbus.Planner, "DELETE": false, "PURGE": false, "SNAPSHOT": false, "MSG.DELETE": false, "MSG.GET": false} {
				if row.Name == "KV_anything" {
					may = false
				}
				check(call+" of stream "+row.Name, p.publish("$JS.API.STREAM."+call+"."+row.Name), !may)
			}
		}
		for _, subject := range []string{">", "trimtab.>", "_INBOX.>", "_INBOX_planner.>", "_INBOX_agent_h2.>", "$JS.>", "$KV.>", "$SYS.>"} {
			mine := subject == natsbus.Inbox(u.role, u.host)+".>" || u.role == natsbus.Observer && subject == "trimtab.>"
			check("subscribe to "+subject, p.subscribe(subject), !mine)
		}
		for _, subject := range []string{"_INBOX_planner.x", "_INBOX_agent_h1.x", "$JS.API.STREAM.CREATE.OTHER", "$JS.API.STREAM.NAMES", "$JS.API.CONSUMER.LIST.PLANS", "$JS.API.META.LEADER.STEPDOWN", "anything"} {
			check("publish "+subject, p.publish(subject), true)
		}
	}
	t.Logf("%d users, %d things tried, %d answered otherwise than the table says", len(f.spec.users()), tried, wrong)
}

// values has one of each kind.
func values() map[trimtab.Kind]trimtab.Value {
	now := time.Now().UTC()
	var w codec.FrameWriter
	r, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "w"}})
	w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Start: 1, End: 2, Adjusted: 1, Resource: r})
	return map[trimtab.Kind]trimtab.Value{
		trimtab.KindSpans:    w.Frame(0),
		trimtab.KindSketch:   &trimtab.Sketch{Workload: "w", From: now.Add(-time.Second), To: now},
		trimtab.KindSample:   &trimtab.Sample{Workload: "w", Source: "s", Quantity: quantity.Load, Time: now, Value: 1},
		trimtab.KindAlert:    &trimtab.Alert{Workload: "w", Name: "n", Time: now},
		trimtab.KindEstimate: &trimtab.Estimate{Workload: "w", Model: "m", Time: now},
		trimtab.KindPlan: &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: now, Objective: "njc",
			Capacity: 4, Resource: "cpu", Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}},
		trimtab.KindPart: &trimtab.Plan{Pool: "p", Host: "h1", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: now, Lease: 10,
			Cause: trimtab.Cause{Kind: codes.CauseTick}},
		trimtab.KindOutcome: &trimtab.Outcome{Pool: "p", Host: "h1", Epoch: 1, Sequence: 1, Step: 1, Time: now},
		trimtab.KindHolding: &trimtab.Holding{Pool: "p", Host: "h1", Time: now},
		trimtab.KindCommand: &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: now},

		colocation.KindContributions: &colocation.Contributions{Workload: "w", Time: now},
		colocation.KindColocation:    &colocation.Colocation{Pool: colocation.JobsPool("p"), Host: "h1", Time: now},

		speculation.KindMachine:    &speculation.Machine{Pool: "p", Host: "h1", Time: now, Life: 1, Report: 1},
		speculation.KindPlacements: &speculation.Placements{Pool: "p", Host: "h1", Time: now, Epoch: 1, Sequence: 1, Life: 1, Report: 1, Lease: 30},
		speculation.KindCandidates: &speculation.Candidates{Pool: "p", Message: []byte{1}},
		speculation.KindJobRequest: &speculation.JobRequest{Pool: "p", Verb: speculation.CancelJob, Time: now, ID: "1", Job: speculation.BatchJob{Name: "j"}},
		speculation.KindJobState:   &speculation.JobState{Pool: "p", Name: "j", Time: now, State: speculation.StateWaiting},
	}
}

func TestEveryRoleGetsWhatTheTableGivesIt(t *testing.T) {
	t.Parallel()
	for name, asLeaf := range map[string]bool{"agents are clients": false, "agents are leaf nodes": true} {
		t.Run(name, func(t *testing.T) { everyRoleGets(t, asLeaf) })
	}
}

func everyRoleGets(t *testing.T, asLeaf bool) {
	f := startFleet(t, nil)
	f.asLeaf = asLeaf
	buses := map[natsbus.Role]*natsbus.Bus{}
	for _, r := range []natsbus.Role{natsbus.Planner, natsbus.Collector, natsbus.Analyzer, natsbus.Agent, natsbus.Console} {
		host := ""
		if r == natsbus.Agent {
			host = "h1"
		}
		buses[r] = f.opened(r, host)
	}
	all := values()
	for _, row := range natsbus.Table() {
		if row.Bucket {
			if row.Name != "(others)" {
				useBucket(t, buses, row)
			}
			continue
		}
		if row.Kind == "" {
			continue
		}
		type got struct {
			role natsbus.Role
			v    trimtab.Value
		}
		arrived := make(chan got, 100)
		for _, r := range row.Read {
			s := bus.Subscription{Kind: row.Kind, For: string(r), Handle: func(_ context.Context, d bus.Delivery) error {
				arrived <- got{r, d.Value}
				return nil
			}}
			if r == natsbus.Agent && row.Name != "" {
				s.Key, s.Consumer = "p", natsbus.GroupOf("h1")
			}
			if row.Kind == speculation.KindPlacements || row.Kind == trimtab.KindPart {
				s.Key = "p/h1"
			}
			if row.Kind == trimtab.KindSpans {
				s.Key, s.Consumer = "0", "path"
			}
			stop, err := buses[r].Subscribe(t.Context(), s)
			if err != nil {
				t.Fatalf("%s reads %s: %v", r, row.Kind, err)
			}
			defer stop()
		}
		for _, w := range row.Publish {
			if err := buses[w].Publish(t.Context(), all[row.Kind]); err != nil {
				t.Fatalf("%s publishes %s: %v", w, row.Kind, err)
			}
			waiting := map[natsbus.Role]bool{}
			for _, r := range row.Read {
				waiting[r] = true
			}
			// What may be shed is lost where a leaf node's interest is not known yet.
			again, late := time.NewTicker(time.Second), time.After(20*time.Second)
			defer again.Stop()
			for len(waiting) > 0 {
				select {
				case g := <-arrived:
					delete(waiting, g.role)
				case <-again.C:
					if row.Delivery == topic.Shed {
						_ = buses[w].Publish(t.Context(), all[row.Kind])
					}
				case <-late:
					t.Fatalf("%s of %s does not reach %v", row.Kind, w, waiting)
				}
			}
		}
	}
	for r, b := range buses {
		if _, err := b.Queues(t.Context()); err != nil {
			t.Errorf("%s asks what waits: %v", r, err)
		}
	}
	// What cannot be read is put aside by whoever reads it, and acknowledged.
	p := f.peer(user{role: natsbus.Collector})
	if _, err := p.js.Publish(t.Context(), "trimtab.alert.w", []byte("no alert")); err != nil {
		t.Fatal(err)
	}
	for {
		q, err := buses[natsbus.Console].Queues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if q.Aside[trimtab.KindAlert] == 1 {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("not put aside")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// useBucket writes as each who may, and reads as each who may.
func useBucket(t *testing.T, buses map[natsbus.Role]*natsbus.Bus, row natsbus.StreamInfo) {
	t.Helper()
	key, gone := "p/x", "p/gone"
	if row.Name == natsbus.BucketThresholds {
		key = natsbus.ThresholdsKey("p", "h1") // the one that the agent has
		gone = key
	}
	for _, w := range row.Publish {
		b, err := buses[w].Bucket(t.Context(), row.Name)
		if err != nil {
			t.Fatalf("%s opens bucket %s: %v", w, row.Name, err)
		}
		_, err = b.Put(t.Context(), gone, []byte("1"))
		if err == nil {
			err = b.Delete(t.Context(), gone)
		}
		revision := uint64(0)
		if err == nil {
			revision, err = b.Update(t.Context(), key, []byte("1"), 0)
		}
		if err == nil {
			_, err = b.Update(t.Context(), key, []byte("2"), revision)
		}
		if err != nil {
			t.Fatalf("%s writes bucket %s: %v", w, row.Name, err)
		}
	}
	for _, r := range row.Read {
		b, err := buses[r].Bucket(t.Context(), row.Name)
		if err != nil {
			t.Fatalf("%s opens bucket %s: %v", r, row.Name, err)
		}
		keys, err := b.Keys(t.Context())
		if err != nil || !slices.Equal(keys, []string{key}) {
			t.Fatalf("%s lists bucket %s: %q, %v", r, row.Name, keys, err)
		}
		if v, _, err := b.Get(t.Context(), key); err != nil || string(v) != "2" {
			t.Fatalf("%s reads bucket %s: %q, %v", r, row.Name, v, err)
		}
	}
}

func TestPermissionsThatAreTooNarrowAreSaidAtTheStartBySubject(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "")
	for _, u := range f.spec.users() {
		if u.role == natsbus.Observer {
			continue
		}
		needs := f.spec.permissions(u, f.secrets())
		for _, s := range needs.Publish {
			if s == "$SYS.REQ.USER.INFO" || u.role == natsbus.Agent && u.host != "h1" {
				continue
			}
			// Slow to start a server for each: one a role, for a subject of its own.
			if !strings.HasPrefix(s, "trimtab.") || strings.HasPrefix(s, "trimtab.unreadable.") {
				continue
			}
			narrow := startFleet(t, func(conf string) string {
				head, tail, _ := strings.Cut(conf, fmt.Sprintf("user: %q", u.name()))
				return head + fmt.Sprintf("user: %q", u.name()) + strings.Replace(tail, fmt.Sprintf("              %q\n", s), "", 1)
			})
			_, err := narrow.bus(u.role, u.host)
			if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "publish "+s) || !strings.Contains(err.Error(), u.name()) {
				t.Errorf("%s without %s: %v", u.name(), s, err)
			}
			break
		}
	}
}

func TestNobodyButThePlannerPublishesWhatItReadsFromAStream(t *testing.T) {
	for _, row := range natsbus.Table() {
		for _, r := range row.Publish {
			if row.Kind != "" && row.Name != "" && r != natsbus.Planner && slices.Contains(row.Read, r) {
				t.Errorf("%s publishes and reads %s", r, row.Kind)
			}
		}
	}
}

// A server answers on whatever subject it is asked to, without a look at the
// permissions of who asked: a value of a bucket can so arrive as a plan.
func TestAnAnswerOfABucketIsNoPlan(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "")
	agent := f.opened(natsbus.Agent, "h1")
	got := make(chan trimtab.Value, 10)
	stop, err := agent.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Key: "p", Consumer: natsbus.GroupOf("h1"),
		Handle: func(_ context.Context, d bus.Delivery) error { got <- d.Value; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	forged, err := codec.Encode(values()[trimtab.KindPlan], trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := f.peer(user{role: natsbus.Analyzer})
	if _, err := p.js.Publish(t.Context(), "$KV.snapshots.forged", forged); err != nil {
		t.Fatal(err)
	}
	if p.denied(func() error {
		return p.conn.PublishRequest("$JS.API.DIRECT.GET.KV_snapshots.$KV.snapshots.forged", "trimtab.plan.p", nil)
	}) {
		t.Fatal("an analyzer must be able to read its bucket")
	}
	for {
		if n := agent.Stats().Unreadable[trimtab.KindPlan]; n == 1 {
			break
		}
		select {
		case v := <-got:
			t.Fatalf("an analyzer made the agent take a plan: %v", v)
		case <-t.Context().Done():
			t.Fatal("nothing came")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// nats-server takes 1,000 consumers of a stream, unless it is told.
func TestTheServersTakeTheConsumersOfTenThousandAgents(t *testing.T) {
	t.Parallel()
	f := startFleet(t, nil)
	f.opened(natsbus.Planner, "")
	info, err := f.peer(user{role: natsbus.Planner}).js.AccountInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if most, want := info.Limits.MaxConsumers, 2*10_000; most < want {
		t.Errorf("a stream has at most %d consumers, and 10,000 agents have %d", most, want)
	}
}
