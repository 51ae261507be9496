package behavior

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"
)

// The table is what the controller of Kubernetes 1.37.1 itself did; internal/tools/kube/hpa
// runs it and writes the file.
func TestBehaviorBlocksOfATableGiveTheReplicasOfTheControllersOwnFunctions(t *testing.T) {
	text, err := os.ReadFile("testdata/controller.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct {
		Name     string    `json:"name"`
		Behavior *Behavior `json:"behavior"`
		Min      int       `json:"minReplicas"`
		Max      int       `json:"maxReplicas"`
		Replicas int       `json:"replicas"`
		Usage    []float64 `json:"usage"`
		Want     []int     `json:"want"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if len(table) < 60 {
		t.Fatalf("%d cases, want at least 60", len(table))
	}
	looks := 0
	for i := range table {
		c := &table[i]
		if err := c.Behavior.Validate(); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		s, current, tolerance := &State{}, c.Replicas, c.Behavior.Tolerance()
		for k, usage := range c.Usage {
			now := start().Add(time.Duration(k) * SyncPeriod)
			wanted := int(math.Ceil(usage))
			if current > 0 && tolerance.Holds(usage/float64(current)) {
				wanted = current
			}
			d := s.Step(now, c.Behavior, Bounds{c.Min, c.Max}, current, wanted)
			if looks++; d.Replicas != c.Want[k] {
				t.Errorf("%s: look %d, %d replicas, usage of %v: %d (%s), the controller sets %d", c.Name, k, current, usage, d.Replicas, d.Reason, c.Want[k])
				break
			}
			s.Changed(now, c.Behavior, current, d.Replicas)
			current = d.Replicas
		}
	}
	t.Logf("%d cases, %d looks", len(table), looks)
}
