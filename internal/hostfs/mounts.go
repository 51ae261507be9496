package hostfs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// maxMounts is the largest mount table that is read, in bytes.
const maxMounts = 4 << 20

// CPURoot returns the root of control groups that is declared, or where none is the mount
// with the cpu controller.
func CPURoot(declared string) (string, error) {
	if declared != "" {
		return declared, nil
	}
	return CPUHierarchy()
}

// CPUHierarchy returns the mount point of the control group hierarchy with the cpu controller:
// version 1 if mounted, else version 2. The error is trimtab.ErrUnsupported if this host has
// none.
func CPUHierarchy() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup hierarchy: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMounts))
	if err != nil {
		return "", fmt.Errorf("find cgroup hierarchy: %w", err)
	}
	v1, v2 := cgroupMounts(string(b))
	if v1 != "" {
		return v1, nil
	}
	for _, mount := range v2 {
		controllers, err := os.ReadFile(filepath.Join(mount, "cgroup.controllers"))
		if err == nil && slices.Contains(strings.Fields(string(controllers)), "cpu") {
			return mount, nil
		}
	}
	return "", fmt.Errorf("find cgroup hierarchy with the cpu controller: %w", trimtab.ErrUnsupported)
}

// cgroupMounts returns the mount point of version 1's cpu controller and those
// of version 2. The form of a line (proc_pid_mountinfo(5)):
//
//	36 35 98:0 /root /mount/point options [optional fields] - type source super,options
func cgroupMounts(table string) (v1 string, v2 []string) {
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(tail) < 3 {
			continue
		}
		point := unescapeMount(fields[4])
		switch {
		case tail[0] == "cgroup2":
			v2 = append(v2, point)
		case tail[0] == "cgroup" && v1 == "" && slices.Contains(strings.Split(tail[2], ","), "cpu"):
			v1 = point
		}
	}
	return v1, v2
}

// unescapeMount undoes the kernel's octal escapes of white space.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
