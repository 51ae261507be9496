package main

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// The tables are what the horizontal controller of Kubernetes 1.37.1 and the recommender and
// the updater of VPA 1.8.1 themselves did with 200 random objects and loads each;
// internal/tools/kube runs them and writes the files.
func tableOf[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	text, err := os.ReadFile("testdata/controllers/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if len(out) < 200 {
		t.Fatalf("%d cases, want 200", len(out))
	}
	return out
}

// objectOf reads the one object of a case as replay does.
func objectOf(t *testing.T, text []byte, kind string) *config.Autoscaler {
	t.Helper()
	all, err := config.ReadAutoscalers("object.json", text, kind)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %d objects, %v", text, len(all), err)
	}
	return &all[0]
}

func TestReplaySetsTheReplicasThatTheHorizontalControllerSets(t *testing.T) {
	type random struct {
		Object   json.RawMessage `json:"object"`
		Replicas int             `json:"replicas"`
		Request  float64         `json:"request"`
		Looks    [][7]int        `json:"looks"`
		Want     []int           `json:"want"`
	}
	looks := 0
	for i, c := range tableOf[random](t, "hpa.json") {
		words := hpaWords(objectOf(t, c.Object, config.KindHPA))
		h := &autoscale.HPA{Min: words.Min, Max: words.Max, Behavior: words.Behavior}
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		current := c.Replicas
		for k, l := range c.Looks {
			var load *float64
			if l[0] >= 0 {
				v := float64(l[0]) / 1000
				load = &v
			}
			var all []autoscale.Metric
			for _, target := range words.Targets {
				sum := l[6]
				if target.Load {
					sum = l[0]
				}
				all = append(all, target.Metric(c.Request/1000, podsOf(l, sum), load))
			}
			got := h.Step(time.Date(2026, 3, 1, 0, 0, 15*k, 0, time.UTC), current, all)
			if looks++; got != c.Want[k] {
				t.Errorf("case %d, look %d: %d replicas to %d, the controller sets %d: %v of %s", i, k, current, got, c.Want[k], l, c.Object)
				break
			}
			current = got
		}
	}
	t.Logf("%d looks", looks)
}

// podsOf are the pods of a look: ready for long, young and just ready, old and just ready,
// starting, and ready without a value. A sum below 0 was not read.
func podsOf(l [7]int, sum int) (out []autoscale.Pod) {
	n := l[1] + l[2] + l[3]
	for kind, p := range map[int]autoscale.Pod{
		1: {Ready: true, Age: time.Hour, Held: 50 * time.Minute},
		2: {Ready: true, Age: time.Minute, Held: 10 * time.Second},
		3: {Ready: true, Age: 400 * time.Second, Held: 10 * time.Second},
		4: {Pending: true, Age: 5 * time.Second},
		5: {Ready: true, Age: time.Hour, Held: 50 * time.Minute},
	} {
		for i := range l[kind] {
			if kind <= 3 && sum >= 0 {
				v := sum / n
				if first := map[int]bool{1: true, 2: l[1] == 0, 3: l[1]+l[2] == 0}[kind]; first && i == 0 {
					v += sum % n
				}
				usage := float64(v) / 1000
				p.Usage = &usage
			}
			out = append(out, p)
			p.Usage = nil
		}
	}
	return out
}

func TestReplayRecommendsAndChangesWhatVPAItselfDoes(t *testing.T) {
	type random struct {
		Object json.RawMessage `json:"object"`
		Every  int             `json:"every"`
		Usage  []int           `json:"usage"`
		Want   [][6]int        `json:"want"`
	}
	asked := 0
	for i, c := range tableOf[random](t, "vpa.json") {
		words := vpaWords(objectOf(t, c.Object, config.KindVPA))
		if acts := words.Recreate || words.InPlace; acts != (len(c.Want) > 0) {
			t.Errorf("case %d: %+v acts: %v, the recommender has %d recommendations: %s", i, words, acts, len(c.Want), c.Object)
			continue
		}
		v := autoscale.NewVPA()
		v.MinCPU, v.MaxCPU = words.Min, words.Max
		for k, usage := range c.Usage {
			v.CPU(time.Date(2026, 3, 1, 0, k*c.Every, 0, 0, time.UTC), float64(usage)/1000)
			if k%10 != 9 || len(c.Want) == 0 {
				continue
			}
			cpu, _, _ := v.Recommend()
			want, got := c.Want[k/10], [6]int{}
			for to, amount := range []float64{cpu.Lower, cpu.Target, cpu.Upper} {
				got[to] = int(math.Round(amount * 1000))
			}
			request := float64(want[3]) / 1000
			got[3], got[4] = want[3], want[4]
			if cpu.Update(request, time.Duration(want[4])*time.Hour) != request {
				got[5] = 1
			}
			if asked++; got != want {
				t.Errorf("case %d, sample %d: %v, recommender and updater say %v: %s", i, k, got, want, c.Object)
				break
			}
		}
	}
	t.Logf("%d recommendations", asked)
}
