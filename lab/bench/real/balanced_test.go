package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

func TestTwoHostsArePlayedByThemselvesByTheKernelAndByTrimtab(t *testing.T) {
	for args, ok := range map[string]bool{
		"--scenario two-hosts --policy weights,trimtab:njc:spans":  true,
		"--scenario two-hosts,peaks --policy weights":              false,
		"--scenario two-hosts --policy equal":                      false,
		"--scenario two-hosts --policy trimtab:njc:promql":         true,
		"--scenario two-hosts --policy trimtab:njc:spans:always":   true,
		"--scenario two-hosts --policy trimtab:njc:spans:fast":     false,
		"--scenario two-hosts --policy trimtab:njc --signal spans": true,
	} {
		if _, err := parse(strings.Fields(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestARequestIsOfTheInstanceThatAnsweredIt(t *testing.T) {
	var b balanced
	at := time.Now()
	b.answered.Store(at.UnixNano(), 1)
	if b.instance(at.Add(1)) != 0 || b.instance(at) != 1 || b.instance(at) != 0 {
		t.Error("it is of the other one, or is kept")
	}
}

func TestTheFileOfTwoHostsSaysWhichHasWhatAndWhereTheBusIs(t *testing.T) {
	h := three()
	h.dir, h.beside, h.common = t.TempDir(), &rig.Group{Name: "g-pool-2"}, []*rig.Group{{Name: "g-shop"}}
	text, err := (&subject{Objective: "default", Signal: &spans{}}).file(h, addresses{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", ""}, "nats: {listen: \"127.0.0.1:5\"}\n")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	hosts := [3]string{"", hostName(), secondHost}
	for i, w := range cfg.Workloads {
		if w.Knob.Host != hosts[i] || w.Knob.Cgroup != "g-shop/"+h.services[i].group.Name {
			t.Errorf("%s: host %q, group %q", w.Name, w.Knob.Host, w.Knob.Cgroup)
		}
	}
	if cfg.Actuator.CgroupRoot != filepath.Join(h.Root, "g-pool") || cfg.NATS.Listen == "" {
		t.Errorf("%+v %+v", cfg.Actuator, cfg.NATS)
	}
}
