package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/config"
)

// Found: a service in a group of the cpu hierarchy alone was never recommended a
// limit, and nothing said why.
func TestTheDoctorSaysWhenTheUseOfAGroupCannotBeRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cpu")
	beside := filepath.Join(filepath.Dir(root), "cpuacct")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "shop"), 0o755), os.MkdirAll(filepath.Join(beside, "other"), 0o755),
		os.WriteFile(filepath.Join(beside, "other", "cpuacct.usage"), []byte("1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	v := &visit{}
	v.accounted(actuator.Location{Root: root, Path: "other"}, "other")
	v.accounted(actuator.Location{Root: beside, Path: "shop"}, "shop")
	if len(v.found) > 0 {
		t.Errorf("what can be read: %v", v.found)
	}
	v.accounted(actuator.Location{Root: root, Path: "shop"}, "shop")
	if len(v.found) != 1 || v.found[0].Level != FoundNote || !strings.Contains(v.found[0].Hint, "make the same group below "+beside) {
		t.Errorf("%v", v.found)
	}
}

// As Linux from 6.12 on has it in /sys/kernel/sched_ext (kernel/sched/ext.c).
func TestTheDoctorNamesASchedulerThatMayLeaveQuotasAlone(t *testing.T) {
	dir, v := t.TempDir(), &visit{}
	v.scheduler(dir)
	for _, state := range []string{"disabled", "enabled"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "root"), 0o755), os.WriteFile(filepath.Join(dir, "state"), []byte(state+"\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "root", "ops"), []byte("scx_simple\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		v.scheduler(dir)
	}
	if len(v.found) != 1 || v.found[0].Level != FoundNote || !strings.Contains(v.found[0].Text, "scx_simple") {
		t.Errorf("%v", v.found)
	}
}

// The process that counts has fewer rights than the doctor: what it says counts.
func TestTheDoctorSaysOfCountersWhatTheProcessThatCountsSays(t *testing.T) {
	cfg := &config.Config{}
	cfg.Measure.Perf = true
	v := &visit{ctx: t.Context(), cfg: cfg, counter: []string{"/bin/sh", "-c", `echo '{"lacks":["count task-clock: permission denied"]}'; cat >/dev/null`}}
	v.measured()
	v.counter = []string{"/bin/sh", "-c", "exit 1"}
	v.measured()
	if len(v.found) != 2 || v.found[0].Level != FoundBad || v.found[1].Level != FoundBad || !strings.Contains(v.found[0].Text, "count task-clock: permission denied") {
		t.Errorf("%v", v.found)
	}
}

func TestTheDoctorSaysThatASourceIsNotThereAndWhatToDo(t *testing.T) {
	cfg := &config.Config{}
	cfg.Measure.Sources = map[string]string{"dcgm": "http://127.0.0.1:1/metrics"}
	v := newVisit(t.Context(), cfg, Location{Host: "h"})
	v.measured()
	if len(v.found) != 1 || v.found[0].Level != FoundBad || v.found[0].Subject != "measure.sources.dcgm" || !strings.Contains(v.found[0].Text, "no DCGM exporter at http://127.0.0.1:1/metrics") {
		t.Errorf("%v", v.found)
	}
}
