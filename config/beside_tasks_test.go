package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/config"
)

func TestNoSpeculativeTaskRunsWithoutTheSection(t *testing.T) {
	if c := parse(t, "pool: {cpu: 4}\n"); c.Beside.Tasks != nil {
		t.Errorf("%+v", c.Beside.Tasks)
	}
}

func TestWhatSpeculateLeavesOutHasItsDefaults(t *testing.T) {
	c := parse(t, "beside: {tasks: {user: batch, programs: [/opt/batch/*]}}\n")
	want := &config.BesideTasks{
		User: "batch", Cgroup: "trimtab", Programs: []string{"/opt/batch/*"}, Mode: config.Responsiveness, Slack: 1,
		Ratio: config.TaskRatio{CPU: 1, Memory: 0.4}, Thresholds: config.TaskThresholds{CPU: 0.8, Memory: 0.8},
		Tasks: 64, Queue: 100, Output: 1 << 20, Processes: 1024, Lease: 5 * time.Minute,
	}
	if diff := cmp.Diff(want, c.Beside.Tasks); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatSpeculateSaysIsTaken(t *testing.T) {
	s := load(t, "speculate.yaml").Beside.Tasks
	if s.Mode != config.Utilization || s.Slack != 0 || s.Ratio != (config.TaskRatio{CPU: 1, Memory: 0.3}) || s.Wall != 6*time.Hour ||
		s.Regular != (config.TaskRegular{CPU: 2, Memory: 4 << 30}) || len(s.Programs) != 2 {
		t.Errorf("%+v", s)
	}
	want := []config.Threshold{{Name: "cpu", Upper: 0.8}, {Name: "memory", Upper: 0.8}, {Name: "pressure_io", Upper: 0.2}}
	if diff := cmp.Diff(want, s.Thresholds.List()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
