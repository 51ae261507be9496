package config

import (
	"fmt"
	"path/filepath"
	"time"
)

// check looks at where knobs are, and the host's own limits.
func (a *Actuator) check(v *validator) {
	for _, dir := range []struct{ path, value, example string }{
		{"actuator.cgroup_root", a.CgroupRoot, "/sys/fs/cgroup"}, {"actuator.lock_dir", a.LockDir, "/run/trimtab"},
	} {
		if dir.value != "" && !filepath.IsAbs(dir.value) {
			v.fail(dir.path, fmt.Sprintf("%s %q is not absolute", lastOf(dir.path), clip(dir.value)), "write "+dir.example+", or remove the key")
		}
	}
	if v.has("actuator.max_lease") {
		lease := v.config.Lease
		setDuration(&lease, defaultLease(v.config.Round))
		v.between("actuator.max_lease", a.MaxLease, lease, 25*time.Hour)
	}
}
