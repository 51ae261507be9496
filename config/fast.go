package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Fast lets hosts move CPU quotas between two rounds, inside what each plan allows.
type Fast struct {
	// off: quotas stay where plans set them. recommend: plans say within what hosts could move them, and no host does. act: each host moves the quotas of workloads in mode act every 100 ms, lends what one does not use to another, and takes it back at once. It is off by default, since it writes quotas up to ten times a second, where rounds write a few in a minute.
	Mode trimtab.Mode `yaml:"mode"`
	// Control group above those of all workloads of the pool on a host, and of nobody else, such as shop.slice. Plans set its quota to what the pool may give there, so that moves cannot give more: each write to a quota gives what it bounds a new period's time. Left out: there is none, and groups that are moved may use up to about a tenth more than their quotas.
	Parent string `yaml:"parent"`
	// Share of its target that a workload never lends, (0, 1].
	Floor float64 `yaml:"floor" want:"more than 0 and at most 1"`
	// How many times its target a workload may borrow up to, 1 to 100; never more than knob.cpu.max.
	Ceiling float64 `yaml:"ceiling" want:"1 to 100" hint:"4 lets a workload borrow up to four times its target"`
	// Longest time that a quota may stop a workload in a period of 100 ms before more is borrowed, 10ms to 95ms. Less is readier for steps of the load, and needs more cores: 50ms up to a tenth more than 70ms. Within it trimtab follows what was late.
	Stall time.Duration `yaml:"stall" want:"10ms to 95ms"`
	// Share of its target that a workload may save of a period for later ones, where the kernel can (CFS burst, Linux 5.14), [0, 1]; 0: none.
	Burst float64 `yaml:"burst" want:"0 to 1" hint:"1 lets a workload save a period's worth of its target"`
}

// Acts reports whether hosts move quotas by themselves.
func (f *Fast) Acts() bool { return f.Mode == trimtab.Act }

// check looks at the section.
func (f *Fast) check(v *validator) {
	if modes := []string{string(trimtab.Off), string(trimtab.Recommend), string(trimtab.Act)}; !slices.Contains(modes, string(f.Mode)) {
		v.fail("fast.mode", fmt.Sprintf("unknown mode %q", clip(string(f.Mode))), suggest(string(f.Mode), modes))
	}
	if p := f.Parent; p != "" && (path.IsAbs(p) || !filepath.IsLocal(p) || path.Clean(p) == "." || strings.Contains(p, "*")) {
		v.fail("fast.parent", fmt.Sprintf("parent %q is no group below the root", clip(p)), "write a path relative to actuator.cgroup_root, such as shop.slice")
	}
	if f.Mode != trimtab.Off && v.config.Pool.Capacity() > 0 && v.config.Pool.Resource() != trimtab.CPU {
		v.fail("fast.mode", "the pool does not share CPU time", "set pool.cpu, or remove fast")
	}
}
