package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestNumbersAreWhatYAML12SaysTheyAre(t *testing.T) {
	for text, want := range map[string]float64{"8": 8, "1e1": 10, "1E+1": 10, "80e-1": 8, "+8": 8, ".8e1": 8, "8.": 8, "010": 10, "0x1F": 31, "0o17": 15, "1.5e2": 150} {
		c, err := config.Parse("x", []byte("pool: {cpu: "+text+"}\n"))
		if err != nil || c.Pool.CPU != want {
			t.Errorf("%s: %v, %v, want %v", text, c, err, want)
		}
	}
	for text, want := range map[string]int{"1e1": 10, "010": 10, "0x10": 16, "2.0": 2, "0o10": 8} {
		c, err := config.Parse("x", []byte("analyzer: {partitions: "+text+"}\n"))
		if err != nil || c.Analyzer.Partitions != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if c, err := config.Parse("x", []byte("storage: {limit: 0x40000000}\n")); err != nil || c.Storage.Limit != 1<<30 {
		t.Error(err)
	}
	for _, text := range []string{"'8'", `"1e1"`, "1e400", "8e", "e8", "1:30", ".", "-", "0x", "0o9", "1,5", "１"} {
		if _, err := config.Parse("x", []byte("pool: {cpu: "+text+"}\n")); err == nil || !strings.Contains(err.Error(), "x:1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{"1e2": "add a unit: 100s or 100ms", "90": "add a unit: 90s or 90ms", "1:30": "write a number with a unit"} {
		if _, err := config.Parse("x", []byte("lease: "+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestZeroIsNotTakenForAKeyThatIsLeftOut(t *testing.T) {
	knob := "pool: {cpu: 8}\nworkloads:\n- {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {kubernetes: {namespace: s, deployment: a}, cpu: {min: 0.1, max: 2}, replicas: {%s}}}\n"
	for text, want := range map[string]string{
		fmt.Sprintf(knob, "max: 0"):      "max is 0, which has no meaning here\n  hint: write more than 0, or remove the key for the default, 10",
		fmt.Sprintf(knob, "startup: 0s"): "startup is 0",
		"beside: {tasks: {mode: responsiveness, programs: [{name: a, command: [/bin/true]}], tasks: 0}}\n": "tasks is 0",
	} {
		if _, err := config.Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	c, err := config.Parse("x", []byte(fmt.Sprintf(knob, "spare: 0, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}")))
	if err != nil || c.Workloads[0].Knob.Replicas.Spare != 0 || *c.Workloads[0].Knob.Replicas.Behavior.ScaleDown.Window != 0 {
		t.Error(err)
	}
	if c, err := config.Parse("x", []byte("guard: {dead_band: 0}\nplanning: {move_cost: 0}\n")); err != nil || c.Guard.DeadBand != 0 || c.Planning.MoveCost != 0 {
		t.Error(err)
	}
}
