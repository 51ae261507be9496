package console

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
)

// pipelineOf asks the API.
func pipelineOf(t *testing.T, v *View, o Options) (p Pipeline) {
	t.Helper()
	code, body, _ := request(t, Handler(v, o), "GET", "/api/v1/pipeline", "")
	if err := json.Unmarshal([]byte(body), &p); code != 200 || err != nil {
		t.Fatal(code, err, body)
	}
	return p
}

func TestThePipelineTellsStagesQueuesLeaderAndWhatWasPutAside(t *testing.T) {
	b := bustest.NewMemory()
	defer b.Close()
	b.Pause = time.Millisecond
	busy, release := make(chan struct{}), make(chan struct{})
	stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, For: "planner", Handle: func(_ context.Context, d bus.Delivery) error {
		if d.Value.(*trimtab.Alert).Name == "poison" {
			return trimtab.ErrInvalid
		}
		if d.Again == 0 {
			return errors.New("not now")
		}
		busy <- struct{}{}
		<-release
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer close(release)
	for _, name := range []string{"poison", "held", "next"} {
		if err := b.Publish(t.Context(), &trimtab.Alert{Workload: "shop", Name: name, Time: noon}); err != nil {
			t.Fatal(err)
		}
	}
	<-busy
	p := pipelineOf(t, testView(), Options{
		Bus:    b,
		Leader: func(_ context.Context, pool string) (string, uint64, error) { return "host of " + pool, 7, nil },
		Stages: func() []StageState {
			return []StageState{{Name: "learn", Reason: "starting", Since: noon}, {Name: "planner", Ready: true, Since: noon}}
		},
	})
	if p.Leader != "host of cpu" || p.Epoch != 7 || p.Aside["alert"] != 1 || p.Problem != "" {
		t.Errorf("%+v", p)
	}
	if s := p.Stages[0]; s.Ready || s.Reason != "starting" || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if s := p.Stages[1]; !s.Ready || s.Waiting != 2 || s.Redelivered != 1 || len(s.Queues) != 1 || s.Queues[0].Lag == nil {
		t.Errorf("%+v", s)
	}
}

func TestABusThatDoesNotAnswerIsSaid(t *testing.T) {
	b := bustest.NewMemory()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if p := pipelineOf(t, testView(), Options{Bus: b}); !strings.Contains(p.Problem, "closed") {
		t.Errorf("%+v", p)
	}
}

// inputs makes an estimate of the nth second, in which the named ones are
// missing.
func inputs(n int, missing ...string) *trimtab.Estimate {
	e := report(n, .9)
	e.Curve = &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}
	for _, name := range []string{"load", "performance"} {
		in := trimtab.Input{Name: name, Value: 1, Source: "prometheus"}
		for _, m := range missing {
			if m == name {
				in = trimtab.Input{Name: name, Source: "prometheus", Missing: "server returned HTTP status 503"}
				e.Hold = "no " + name + " from prometheus"
			}
		}
		e.Inputs = append(e.Inputs, in)
	}
	return e
}

func TestAMissingInputIsToldWithTheTimeItWasLastThere(t *testing.T) {
	v := NewView(Config{Pool: "cpu", Resource: "cpu", Capacity: 1, Round: time.Hour, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	lacking := func(now int) []MissingInput {
		p := Pipeline{Time: noon.Add(time.Duration(now) * time.Second)}
		v.lacking(&p)
		return p.Inputs
	}
	if m := lacking(0); len(m) != 1 || m[0].Input != "estimate" || m[0].Reason != "none yet" {
		t.Errorf("before the first estimate: %+v", m)
	}
	v.Observe(inputs(1))
	if m := lacking(1); len(m) != 0 {
		t.Errorf("all there: %+v", m)
	}
	v.Observe(inputs(5, "load"))
	v.Observe(inputs(9, "load", "performance"))
	want := noon.Add(time.Second)
	m := lacking(9)
	if len(m) != 2 || m[0].Input != "load" || !m[0].Since.Equal(want) || m[0].Reason != "server returned HTTP status 503" || m[0].Workload != "shop" {
		t.Errorf("%+v", m)
	}
	s := v.Status(noon.Add(10 * time.Second))
	if r := s.Workloads[0]; !strings.HasPrefix(r.State, "held: ") || !r.Since.Equal(want) {
		t.Errorf("%s since %v, want since %v", r.State, r.Since, want)
	}
	v.Observe(inputs(12))
	if m := lacking(12); len(m) != 0 {
		t.Errorf("back again: %+v", m)
	}
	// It is gone again: since then, not since the first time.
	v.Observe(inputs(14, "load"))
	if m := lacking(14); len(m) != 1 || !m[0].Since.Equal(noon.Add(12*time.Second)) {
		t.Errorf("%+v", m)
	}
	if m := lacking(4 * 3600); len(m) != 2 || m[0].Input != "load" || m[1].Input != "estimate" || !m[1].Since.Equal(noon.Add(14*time.Second)) {
		t.Errorf("nothing for hours: %+v", m)
	}
}

func TestAHoldIsToldSinceTheFirstOfAnUnbrokenRowOfPlans(t *testing.T) {
	v := NewView(Config{Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	hold := func(n int, why string) time.Time {
		e := report(n, .9)
		e.Curve = &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}
		v.Observe(e)
		p := at(n)
		if why != "" {
			p.Held = map[string]string{"shop": why}
		}
		v.Observe(p)
		return v.Status(noon.Add(time.Duration(n) * time.Second)).Workloads[0].Since
	}
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		n    int
		why  string
		want time.Time
	}{{1, "a", second(1)}, {2, "b", second(1)}, {3, "", time.Time{}}, {4, "a", second(4)}, {5, "a", second(4)}} {
		if got := hold(c.n, c.why); !got.Equal(c.want) {
			t.Errorf("plan %d: since %v, want %v", c.n, got, c.want)
		}
	}
}

func TestTheNewestAuditIsAnswered(t *testing.T) {
	v := testView()
	h := Handler(v, Options{})
	if code, _, _ := request(t, h, "GET", "/api/v1/fairness", ""); code != 404 {
		t.Error("before any", code)
	}
	p := plan(1, 2)
	p.Audit = &trimtab.Audit{Now: trimtab.Fairness{Envy: .25}}
	v.Observe(p)
	v.Observe(plan(2, 2)) // not audited
	var a Audited
	code, body, _ := request(t, h, "GET", "/api/v1/fairness", "")
	if err := json.Unmarshal([]byte(body), &a); code != 200 || err != nil || a.Plan != "2-1" || a.Audit.Now.Envy != .25 {
		t.Error(code, err, body)
	}
}
