package kubernetes

import (
	"regexp"
	"strings"
)

// podInPath finds a pod and one of its containers in the path of a cgroup, from its end,
// since a nested cluster puts a prefix before it. A static pod has 32 hexadecimal digits
// instead of a uid.
//
//	systemd   …/kubepods-burstable-podUID.slice/cri-containerd-ID.scope    dashes of UID as _
//	cgroupfs  …/kubepods/burstable/podUID/ID
var podInPath = regexp.MustCompile( //nolint:gochecknoglobals // compiled once
	`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/(?:(?:cri-containerd|crio|docker)-)?([0-9a-f]{64})(?:\.scope)?)?(?:/|$)`)

// ParseCgroup returns the uid of the pod that a cgroup belongs to, and the id of the
// container, "" where the group is that of the whole pod; ok is false where it is of no
// pod.
func ParseCgroup(path string) (uid, container string, ok bool) {
	all := podInPath.FindAllStringSubmatch(path, -1)
	if len(all) == 0 {
		return "", "", false
	}
	last := all[len(all)-1]
	return strings.ReplaceAll(last[1], "_", "-"), last[2], true
}

// ParseContainerID returns the id in a status's RUNTIME://ID.
func ParseContainerID(s string) string {
	_, id, ok := strings.Cut(s, "://")
	if !ok {
		return ""
	}
	return id
}
