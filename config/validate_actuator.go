package config

import (
	"fmt"
	"path/filepath"
	"time"
)

// actuator checks where knobs are, and the host's own limits.
func (v *validator) actuator() {
	a := &v.config.Actuator
	for _, dir := range []struct{ path, value, example string }{
		{"actuator.cgroup_root", a.CgroupRoot, "/sys/fs/cgroup"}, {"actuator.lock_dir", a.LockDir, "/run/trimtab"},
	} {
		if dir.value != "" && !filepath.IsAbs(dir.value) {
			v.fail(dir.path, fmt.Sprintf("%s %q is not absolute", lastOf(dir.path), clip(dir.value)), "write "+dir.example+", or remove the key")
		}
	}
	if r := a.Reserve.CPU; !(r >= 0 && r <= 1e6) {
		v.fail("actuator.reserve.cpu", fmt.Sprintf("cpu is %v, want 0 to 1000000", r), "write the cores that are left to others, or remove the key")
	}
	if r := a.Reserve.Memory; r < 0 || r > 1<<50 {
		v.fail("actuator.reserve.memory", fmt.Sprintf("memory is %v, want 0B to 1024TiB", r), "write the memory that is left to others, such as 1GiB, or remove the key")
	}
	if v.has("actuator.max_lease") {
		lease := v.config.Lease
		setDuration(&lease, defaultLease(v.config.Round))
		v.between("actuator.max_lease", a.MaxLease, lease, 25*time.Hour)
	}
	v.between("actuator.clock_skew", a.ClockSkew, time.Second, time.Hour)
	v.share("actuator.max_fall", a.MaxFall)
	v.between("actuator.fall_window", a.FallWindow, 100*time.Millisecond, time.Hour)
	v.share("actuator.max_lowered", a.MaxLowered)
	v.between("actuator.lowered_window", a.LoweredWindow, 100*time.Millisecond, time.Hour)
}
