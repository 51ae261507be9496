package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jspan is a span of a recorded trace in Jaeger's form: ids, service, kind, start and
// duration in ms.
type jspan struct {
	id, parent, service, kind string
	start, took               int
	// reference is that to the parent, CHILD_OF if "".
	reference string
	tags      map[string]string
}

// jaegerTraces writes one trace of each list of spans, 250 ms after the one before.
func jaegerTraces(t *testing.T, traces ...[]jspan) string {
	t.Helper()
	type tag struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	var data []any
	for i, trace := range traces {
		id := fmt.Sprintf("%x", i+1)
		var spans []any
		for _, s := range trace {
			references := []map[string]string{}
			if s.parent != "" {
				kind := s.reference
				if kind == "" {
					kind = "CHILD_OF"
				}
				references = append(references, map[string]string{"refType": kind, "traceID": id, "spanID": s.parent})
			}
			tags := []tag{{"span.kind", s.kind}}
			for k, v := range s.tags {
				tags = append(tags, tag{k, v})
			}
			spans = append(spans, map[string]any{"traceID": id, "spanID": s.id, "references": references, "tags": tags,
				"startTime": 1_800_000_000_000_000 + 250_000*i + 1000*s.start, "duration": 1000 * s.took, "process": map[string]string{"serviceName": s.service}})
		}
		data = append(data, map[string]any{"traceID": id, "spans": spans})
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "traces.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// times returns n traces.
func times(n int, trace func(i int) []jspan) (out [][]jspan) {
	for i := range n {
		out = append(out, trace(i))
	}
	return out
}

// contributed returns the answer to `trimtab contributions`, and the mean times by component.
func contributed(t *testing.T, file string) (contributionsAnswer, map[string]float64) {
	t.Helper()
	var got contributionsAnswer
	code, out := say(t, "contributions", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil {
		t.Fatalf("code %d, %v:\n%s", code, err, out)
	}
	means := map[string]float64{}
	for _, c := range got.Components {
		means[c.Name] = float64(int(c.Mean*1e3+0.5)) / 1e3
	}
	return got, means
}

// blamed returns the answer to `trimtab blame`.
func blamed(t *testing.T, before, after string) blameAnswer {
	t.Helper()
	var got blameAnswer
	code, out := say(t, "blame", "--baseline", before, "--incident", after, "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil {
		t.Fatalf("code %d, %v:\n%s", code, err, out)
	}
	return got
}

func TestALongPollBesideRequestsIsNone(t *testing.T) {
	request := func(int) []jspan {
		return []jspan{{id: "1", service: "web", kind: "server", took: 50}, {id: "2", parent: "1", service: "web", kind: "client", start: 5, took: 34},
			{id: "3", parent: "2", service: "shop", kind: "server", start: 7, took: 30}}
	}
	poll := func(int) []jspan { return []jspan{{id: "1", service: "shop", kind: "client", took: 30_000}} }
	base, polled := jaegerTraces(t, times(40, request)...), jaegerTraces(t, append(times(10, poll), times(40, request)...)...)
	got, means := contributed(t, polled)
	if want := map[string]float64{"web": 16, "shop": 34}; got.Requests != 40 || !maps.Equal(means, want) {
		t.Errorf("%v requests with %v ms, want 40 with %v", got.Requests, means, want)
	}
	if b := blamed(t, base, polled); b.Verdict != "no change" {
		t.Errorf("%+v", b)
	}
}

func TestWhatFollowsFromARequestTakesNoneOfItsTime(t *testing.T) {
	got, means := contributed(t, jaegerTraces(t, times(40, func(int) []jspan {
		return []jspan{{id: "1", service: "web", kind: "server", took: 40}, {id: "2", parent: "1", service: "web", kind: "client", start: 10, took: 20},
			{id: "3", parent: "2", service: "mail", kind: "server", start: 2000, took: 15, reference: "FOLLOWS_FROM"}}
	})...))
	if want := map[string]float64{"web": 40}; got.Requests != 40 || !maps.Equal(means, want) || len(got.Flagged) > 0 {
		t.Errorf("%v requests with %v ms, flagged %v; want 40 with %v", got.Requests, means, got.Flagged, want)
	}
}

func TestASlowBrokerIsNotBlamedOnTheConsumer(t *testing.T) {
	publish := func(took int) string {
		return jaegerTraces(t, times(40, func(i int) []jspan {
			return []jspan{{id: "1", service: "orders", kind: "server", took: 20 + took + i%4}, {id: "2", parent: "1", service: "orders", kind: "producer", start: 10, took: took},
				{id: "3", parent: "2", service: "billing", kind: "consumer", start: 5000, took: 300}}
		})...)
	}
	b := blamed(t, publish(2), publish(400))
	if b.Verdict != "changed" || len(b.Components) != 1 || b.Components[0].Name != "orders" {
		t.Errorf("%+v", b)
	}
}

// The files that the cases above stand for, where they are there.
func TestPublishedTraceFilesHaveTheirRightAnswers(t *testing.T) {
	data := os.Getenv("TRIMTAB_DATA")
	dir := filepath.Join(filepath.Dir(data), "cases")
	if _, err := os.Stat(dir); data == "" || err != nil {
		t.Skip("there are no cases beside TRIMTAB_DATA")
	}
	for name, requests := range map[string]float64{"30-root-client-longpoll.json": 40, "31-follows-from.json": 40} {
		if got, means := contributed(t, filepath.Join(dir, name)); got.Requests != requests {
			t.Errorf("%s: %v requests with %v", name, got.Requests, means)
		}
	}
	if b := blamed(t, filepath.Join(dir, "38-broker-base.json"), filepath.Join(dir, "38-broker-slow.json")); !strings.HasPrefix(b.Components[0].Name, "orders") {
		t.Errorf("%+v", b)
	}
}
