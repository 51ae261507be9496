package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// answers is a Prometheus server whose answers go wrong, for each workload in
// its own way, once broken is set.
type answers struct {
	broken atomic.Bool
	faults map[string]func(w http.ResponseWriter, r *http.Request, age bool)
}

func vector(w http.ResponseWriter, value string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,%q]}]}}`, time.Now().Unix(), value)
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	age := strings.Contains(query, "time")
	if a.broken.Load() {
		for name, fault := range a.faults {
			if strings.Contains(query, name) {
				fault(w, r, age)
				return
			}
		}
	}
	switch {
	case age:
		vector(w, "0.1")
	case strings.Contains(query, "perf"):
		// Everybody does well: without faults, all are lowered to what the pool has.
		vector(w, "0.99")
	default:
		vector(w, "100")
	}
}

// constantly answers the value's query with text.
func constantly(text string) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, _ *http.Request, age bool) {
		if age {
			vector(w, "0.1")
			return
		}
		vector(w, text)
	}
}

// inPart answers everything but the age with less than there is, and says so.
func inPart(mark string) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, r *http.Request, age bool) {
		if age {
			vector(w, "0.1")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		value := "50"
		if strings.Contains(r.FormValue("query"), "perf") {
			value = "0.99"
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,%q]}]},%s}`, time.Now().Unix(), value, mark)
	}
}

func TestAbsentPrometheusDataOfAnyKindLowersNobodyAndTheReasonIsShown(t *testing.T) {
	t.Parallel()
	a := &answers{faults: map[string]func(http.ResponseWriter, *http.Request, bool){
		"w_error": func(w http.ResponseWriter, _ *http.Request, _ bool) { http.Error(w, "out of order", 500) },
		"w_slow":  func(_ http.ResponseWriter, r *http.Request, _ bool) { <-r.Context().Done() },
		"w_cut": func(w http.ResponseWriter, _ *http.Request, _ bool) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"status":"succ`)
		},
		"w_nan":      constantly("NaN"),
		"w_inf":      constantly("+Inf"),
		"w_negative": constantly("-1"),
		"w_empty": func(w http.ResponseWriter, _ *http.Request, _ bool) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		},
		"w_junk": func(w http.ResponseWriter, _ *http.Request, _ bool) { fmt.Fprint(w, "<html>login</html>") },
		// Half of the load, and the other half in a store that is away.
		"w_thanos":  inPart(`"warnings":["receive series from Addr: 10.0.0.7:10901: rpc error: code = Unavailable desc = EOF"]`),
		"w_cluster": inPart(`"isPartial":true`),
		"w_frozen": func(w http.ResponseWriter, _ *http.Request, age bool) {
			if age {
				vector(w, "3600")
				return
			}
			vector(w, "0.99")
		},
	}}
	// What goes on well, and what loses its group on the host. The pool is so
	// small that nobody can keep what it has, whoever is known first: of 13
	// workloads with 0.8 cores each, any 6 at the least allowed leave 4.3.
	names := []string{"w_well", "w_vanished"}
	for name := range a.faults {
		names = append(names, name)
	}
	server := httptest.NewServer(a)
	defer server.Close()
	q := groupsWith(t, 0.8, names...)
	p := prepare(t, q, "")
	var text strings.Builder
	fmt.Fprintf(&text, `
pool: {cpu: 4, unit: 0.01, step: 0.5}
objective: njc
round: 1s
guard: {max_fall: 0.05, max_lowered: 1, max_moved: 1, dead_band: 0, reversal_window: 0s}
analyzer: {report_interval: 1s, partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
web: {listen_address: %q}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
prometheus: {url: %q, interval: 1s, timeout: 500ms}
workloads:
`, q.root, p.storage(), p.web, server.URL)
	for _, name := range names {
		fmt.Fprintf(&text, "  - {name: %s, slo: {performance: 0.9}, load: 'load{w=%q}', performance: 'perf{w=%q}', knob: {cgroup: %s, cpu: {min: 0.05, max: 0.9}}, mode: act}\n",
			name, name, name, name)
	}
	p.text = text.String()
	p.start()
	p.until("everybody to be lowered", func() error {
		for _, name := range names {
			if v := q.read(name); v >= 0.8 {
				return fmt.Errorf("%s has %v", name, v)
			}
		}
		return nil
	})
	began := time.Now()
	a.broken.Store(true)
	if err := os.Rename(filepath.Join(q.root, "w_vanished"), filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	p.until("everybody to be held", func() error {
		for name := range a.faults {
			if e := p.explanation(name); !strings.HasPrefix(e.State, "held: ") {
				return fmt.Errorf("%s is %q", name, e.State)
			}
		}
		return nil
	})
	p.until("what was decided before to be done", func() error {
		for name := range a.faults {
			if e := p.explanation(name); !heldAndDone(&e) {
				return fmt.Errorf("%s: %q, result %+v", name, e.Decision, e.Result)
			}
		}
		return nil
	})
	was := map[string]float64{}
	for name := range a.faults {
		was[name] = q.read(name)
	}
	first := p.planned()
	p.until("five more plans", func() error {
		for name := range a.faults {
			if v := q.read(name); v < was[name]-1e-9 {
				t.Fatalf("%s fell from %v to %v without data: %+v", name, was[name], v, p.explanation(name))
			}
			was[name] = q.read(name)
		}
		if plan, err := p.plan(); err != nil || plan.Sequence < first.Sequence+5 {
			return fmt.Errorf("plan %s after %s: %w", plan.ID(), first.ID(), err)
		}
		return nil
	})
	saysSince(t, p, a, began)
	reasons := map[string]string{"w_error": "500", "w_slow": "", "w_cut": "", "w_nan": "", "w_inf": "", "w_negative": "", "w_empty": "", "w_junk": "", "w_thanos": "the answer is partial: receive series from", "w_cluster": "the answer is partial", "w_frozen": "", "w_vanished": "no such file"}
	for name, want := range reasons {
		// On a busy machine any answer can be late, and that is the reason for a round.
		p.until("explain "+name+" to say why", func() error {
			code, out := p.command("explain", name)
			if code != exitDone || !strings.Contains(out, cmp.Or(want, "held")) {
				return fmt.Errorf("want %q: code %d: %s", want, code, out)
			}
			return nil
		})
	}
	p.stop()
}

// heldAndDone reports whether a plan holds the workload, and the actuator has
// answered the last decision before that. The analyzer tells that input is
// missing before a plan says so, and a plan that was made before may still be on
// its way to the actuator.
func heldAndDone(e *view.Explanation) bool {
	return strings.HasPrefix(e.State, "held: ") && strings.HasPrefix(e.Decision, "hold: ") && e.Result != nil
}

// explanation is what the console tells of a workload.
func (p *program) explanation(name string) (e view.Explanation) {
	p.Helper()
	_, body, err := p.get("/api/v1/workloads/" + name)
	if err == nil {
		err = json.Unmarshal([]byte(body), &e)
	}
	if err != nil {
		p.Fatal(err, body)
	}
	return e
}

// saysSince checks that the pipeline names the missing input of each workload,
// and the list why it is held, both with a time since about when it began.
func saysSince(t *testing.T, p *program, a *answers, began time.Time) {
	t.Helper()
	read := func(path string, into any) {
		code, body, err := p.get(path)
		if err == nil {
			err = json.Unmarshal([]byte(body), into)
		}
		if err != nil || code != http.StatusOK {
			t.Fatal(path, code, err, body)
		}
	}
	// The last good value may be from shortly before, and on a busy machine a query
	// that is well may have gone unanswered for a while.
	about := func(since time.Time) bool {
		return since.After(began.Add(-time.Minute)) && since.Before(time.Now())
	}
	var pipe view.Pipeline
	read("/api/v1/pipeline", &pipe)
	missing := map[string]view.MissingInput{}
	for _, m := range pipe.Inputs {
		missing[m.Workload] = m
	}
	var status view.Status
	read("/api/v1/status?q=held", &status)
	held := map[string]time.Time{}
	for _, r := range status.Workloads {
		held[r.Name] = r.Since
	}
	for name := range a.faults {
		m, ok := missing[name]
		t.Logf("pipeline: %s lacks %s since %.1f s before the fault: %s", name, m.Input, began.Sub(m.Since).Seconds(), m.Reason)
		if !ok || !about(m.Since) || m.Reason == "" {
			t.Errorf("pipeline does not say since when %s has no input: %+v", name, m)
		}
		if !about(held[name]) {
			t.Errorf("status does not say since when %s is held: %v", name, held[name])
		}
	}
	// A busy machine may keep a query that is well from being answered in time,
	// and the next one is.
	p.until("w_well to lack nothing", func() error {
		var now view.Pipeline
		read("/api/v1/pipeline", &now)
		for _, m := range now.Inputs {
			if m.Workload == "w_well" {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	if m := missing["w_vanished"]; m.Reason == "" || !about(m.Since) {
		t.Errorf("the group that vanished: %+v", m)
	}
}
