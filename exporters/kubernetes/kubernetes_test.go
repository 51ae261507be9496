package kubernetes

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/metric"
)

const (
	eventsAt = "/apis/events.k8s.io/v1/namespaces/shop/events"
	startsAt = "/api/v1/namespaces/trimtab/configmaps/trimtab-start-values-default"
	vpaAt    = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v"
	sized    = `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`
)

// told is a cluster of two pods that is told things at a time of its own.
type told struct {
	*kubetest.Server
	t   *testing.T
	e   *Exporter
	at  time.Time
	set *metric.Set
}

func shop(t *testing.T, change func(*Config), prepare func(*kubetest.Server)) *told {
	t.Helper()
	s := kubetest.New(t)
	s.Shop(2, sized)
	if prepare != nil {
		prepare(s)
	}
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	view := kube.Watch(t.Context(), client, []string{"shop"}, nil)
	t.Cleanup(func() { _ = view.Close() })
	if err := view.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := &told{Server: s, t: t, at: time.Unix(1e9, 0), set: metric.NewSet()}
	c := Config{Pool: "default", Round: 10 * time.Second, Resource: trimtab.CPU, Events: Changes, Metrics: x.set,
		Watched: func() (*kube.Cluster, error) { return view, nil },
		Workloads: []Workload{{Name: "checkout", Mode: trimtab.Act, Ref: kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"}, SLO: 0.95,
			Max: map[string]float64{trimtab.CPU: 2}}}}
	if change != nil {
		change(&c)
	}
	if x.e, err = open(c, func() time.Time { return x.at }); err != nil {
		t.Fatal(err)
	}
	return x
}

// later lets time pass, and the exporter write.
func (x *told) later(d time.Duration) {
	x.at = x.at.Add(d)
	x.seen()
	x.e.Step(x.t.Context())
}

// seen waits until the watch is as far as the server.
func (x *told) seen() {
	if x.e.config.Recommender == "" {
		return
	}
	view, err := x.e.config.Watched()
	for err == nil {
		all, missing := view.Recommended("trimtab")
		if err = missing; len(all) == 1 && all[0].ResourceVersion == kubetest.Sub(x.Get(vpaAt), "metadata")["resourceVersion"] {
			return
		}
		time.Sleep(time.Millisecond)
	}
	x.t.Fatal(err)
}

// outcome tells what became of a change of both pods.
func (x *told) outcome(status trimtab.Status, resource string, from, to float64, why string) {
	o := &trimtab.Outcome{Pool: "default", Host: "h", Epoch: 3, Sequence: 17, Step: 1, Time: x.at}
	for i := range 2 {
		o.Results = append(o.Results, trimtab.Result{KnobID: trimtab.KnobID{Workload: "checkout", Resource: resource, Host: "h", Instance: fmt.Sprint(i)},
			Status: status, Before: trimtab.Units(from), Asked: trimtab.Units(to), Found: trimtab.Units(to), Known: true, Reason: why})
		if resource == trimtab.Replicas {
			break
		}
	}
	x.e.Observe(o)
}

// notes are the events that there are: reason, note, count.
func (x *told) notes() (all []string) {
	for _, path := range x.Paths(eventsAt) {
		o := x.Get(path)
		all = append(all, fmt.Sprint(o["type"], " ", o["reason"], " ", o["note"], " ", kubetest.Sub(o, "series")["count"]))
	}
	return all
}

func (x *told) written(what, result string) float64 {
	return testutil.ToFloat64(x.set.Counter("trimtab_kubernetes_written_total", what, result))
}

func TestOneChangeOfAllPodsIsOneEventOnTheWorkloadInPlainWords(t *testing.T) {
	x := shop(t, nil, nil)
	x.e.Observe(&trimtab.Plan{Pool: "default", Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU}, Why: trimtab.Reason{Summary: "it misses its SLO"}}}})
	x.outcome(trimtab.Written, trimtab.CPU, 0.5, 0.62, "")
	x.later(0)
	want := "Normal Raised trimtab raised the cpu limit of 2 pods from 500m to 620m: it misses its SLO (plan 3-17: trimtab explain checkout) <nil>"
	if got := x.notes(); len(got) != 1 || got[0] != want {
		t.Fatalf("%q, want %q", got, want)
	}
	o := x.Get(x.Paths(eventsAt)[0])
	if of := kubetest.Sub(o, "regarding"); of["kind"] != "Deployment" || of["name"] != "checkout" || of["uid"] != kubetest.Sub(x.Get(kubetest.Deployment), "metadata")["uid"] {
		t.Errorf("it is about %v", of)
	}
	x.outcome(trimtab.Written, trimtab.Replicas, 3, 2, "")
	x.outcome(trimtab.Equal, trimtab.CPU, 0.62, 0.62, "")
	x.outcome(trimtab.Recommended, trimtab.CPU, 0.62, 0.7, "")
	x.later(0)
	if got := x.notes(); len(got) != 2 || !strings.Contains(strings.Join(got, ""), "Lowered trimtab lowered the number of pods from 3 to 2") {
		t.Errorf("%q", got)
	}
}

func TestWhatIsSaidAgainIsCountedAndTooManyEventsOfOneWorkloadAreDropped(t *testing.T) {
	x := shop(t, nil, nil)
	for range 5 {
		x.outcome(trimtab.Refused, trimtab.CPU, 0.5, 0.7, "exceeded quota: q")
		x.later(30 * time.Second)
	}
	if got := x.notes(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning ChangeRefused trimtab has not raised the cpu limit of 2 pods from 500m to 700m: exceeded quota: q") || !strings.HasSuffix(got[0], " 5") {
		t.Errorf("%q", got)
	}
	for i := range 100 {
		x.outcome(trimtab.Written, trimtab.CPU, 0.5, 0.51+float64(i)/100, "")
		x.later(time.Second)
	}
	if sent, dropped := len(x.notes()), x.written("event", "dropped"); sent > 1+burstOfOne+100/30+1 || float64(sent-1)+dropped != 100 {
		t.Errorf("of 100 changes in 100 s, %d events were sent and %v dropped", sent-1, dropped)
	}
}

func TestModeRecommendTellsWhatItWouldDoOnlyWhereThatIsAskedFor(t *testing.T) {
	for events, want := range map[string]int{NoEvents: 0, Changes: 0, AllEvents: 1} {
		x := shop(t, func(c *Config) { c.Events = events; c.Workloads[0].Mode = trimtab.Recommend }, nil)
		x.outcome(trimtab.Recommended, trimtab.CPU, 0.5, 0.7, "")
		x.later(0)
		got := x.notes()
		if len(got) != want || want > 0 && !strings.HasPrefix(got[0], "Normal WouldRaise trimtab would have raised the cpu limit of 2 pods from 500m to 700m") {
			t.Errorf("%s: %q", events, got)
		}
		for _, w := range x.Writes() {
			if !strings.HasSuffix(w, "/events") {
				t.Errorf("it did %s", w)
			}
		}
	}
}

func TestARightThatIsMissingForEventsIsAskedForOnceInTenMinutes(t *testing.T) {
	x := shop(t, nil, nil)
	x.Fail(func(r *http.Request) int {
		if r.Method == http.MethodPost {
			return http.StatusForbidden
		}
		return 0
	})
	for i := range 20 {
		x.outcome(trimtab.Written, trimtab.CPU, 0.5, 0.6+float64(i)/100, "")
		x.later(25 * time.Second)
	}
	if got := x.Requests()["POST events"]; got != 1 {
		t.Errorf("in 500 s it asked %d times", got)
	}
}

func (x *told) hold(mode string, now ...float64) {
	h := &trimtab.Holding{Pool: "default", Host: "h", Time: x.at, LeaseLeft: 10}
	if mode == "at baseline" {
		h.LeaseLeft = 0
	}
	for i, v := range now {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU, Host: "h", Instance: fmt.Sprint(i)}, Now: trimtab.Units(v), Status: &trimtab.KnobStatus{}})
	}
	x.e.Observe(h)
}

func (x *told) starts() string { return fmt.Sprint(kubetest.Sub(x.Get(startsAt), "data")) }

func withStarts(c *Config) { c.StartValues = "trimtab" }

func makeStarts(s *kubetest.Server) {
	s.Put(startsAt, `{"kind":"ConfigMap","apiVersion":"v1","data":{"shop.Deployment.old.app.cpu":"1"}}`)
}

func TestStartValuesAreTheMedianOfWhatPodsHaveAndGoWhenNothingIsHeld(t *testing.T) {
	x := shop(t, withStarts, makeStarts)
	x.later(0)
	if got := x.starts(); got != "map[shop.Deployment.old.app.cpu:1]" {
		t.Errorf("before anything is known it made %s", got)
	}
	x.hold("", 0.7, 0.8, 2)
	x.later(writeAfter)
	if got := x.starts(); got != "map[shop.Deployment.checkout.app.cpu:800m]" {
		t.Errorf("%s", got)
	}
	x.hold("")
	x.later(writeAfter)
	if got := x.starts(); got != "map[shop.Deployment.checkout.app.cpu:800m]" {
		t.Errorf("while there is no pod, %s", got)
	}
	writes := len(x.Writes())
	x.hold("", 0.7, 0.805, 2)
	x.later(writeAfter)
	if len(x.Writes()) != writes {
		t.Error("a difference of less than 2% was written")
	}
	x.hold("at baseline", 0.5, 0.5)
	x.later(writeAfter)
	if got := x.starts(); got != "map[]" {
		t.Errorf("after the lease there is %s", got)
	}
	x.hold("", 0.7)
	x.later(writeAfter)
	x.later(forgetAfter + time.Second)
	if got := x.starts(); got != "map[]" {
		t.Errorf("when the actuator has said nothing for %v there is %s", forgetAfter, got)
	}
	x.hold("", 0.7)
	x.later(writeAfter)
	if err := x.e.End(); err != nil || x.starts() != "map[]" {
		t.Errorf("at the end there is %s, %v", x.starts(), err)
	}
}

func TestAStartValueForWhichAQuotaHasNoRoomIsLeftOut(t *testing.T) {
	x := shop(t, withStarts, func(s *kubetest.Server) {
		makeStarts(s)
		s.Put("/api/v1/namespaces/shop/resourcequotas/q", `{"kind":"ResourceQuota","apiVersion":"v1","status":{"hard":{"limits.cpu":"2"},"used":{"limits.cpu":"1400m"}}}`)
	})
	x.hold("", 0.7)
	x.later(writeAfter)
	if got := x.starts(); strings.Contains(got, "checkout") {
		t.Errorf("600m are left, and it wrote %s", got)
	}
	x.hold("", 0.3)
	x.later(writeAfter)
	if got := x.starts(); got != "map[shop.Deployment.checkout.app.cpu:300m]" {
		t.Errorf("less than the template needs no room: %s", got)
	}
}

func TestStartValuesOfAWorkloadThatIsOnlyRecommendedForAreNotWritten(t *testing.T) {
	x := shop(t, func(c *Config) { withStarts(c); c.Workloads[0].Mode = trimtab.Recommend }, makeStarts)
	x.hold("", 0.7)
	x.later(forgetAfter)
	if got := x.starts(); got != "map[]" {
		t.Errorf("%s", got)
	}
}
