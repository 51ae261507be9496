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
	"github.com/trimtab/trimtab/console/view"
)

// pipelineOf asks the API.
func pipelineOf(t *testing.T, v *view.Model, o Options) (p view.Pipeline) {
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
		Stages: func() []view.StageState {
			return []view.StageState{{Name: "learn", Reason: "starting", Since: noon}, {Name: "planner", Ready: true, Since: noon}}
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
	var a view.Audited
	code, body, _ := request(t, h, "GET", "/api/v1/fairness", "")
	if err := json.Unmarshal([]byte(body), &a); code != 200 || err != nil || a.Plan != "2-1" || a.Audit.Now.Envy != .25 {
		t.Error(code, err, body)
	}
}
