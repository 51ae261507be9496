package kubernetes

import "strings"

// ParseCgroup returns the uid of the pod that a cgroup belongs to, and the id of the container,
// "" for the group of the whole pod; ok is false if it belongs to no pod. A static pod has 32
// hexadecimal digits instead of a uid. The path is read from its end, since a nested cluster puts
// a prefix before it:
//
//	systemd   …/kubepods-burstable-podUID.slice/cri-containerd-ID.scope    dashes of UID as _
//	cgroupfs  …/kubepods/burstable/podUID/ID
func ParseCgroup(path string) (uid, container string, ok bool) {
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if uid = podOf(parts[i]); uid == "" {
			continue
		}
		if i+1 < len(parts) {
			container = containerOf(parts[i+1])
		}
		return uid, container, true
	}
	return "", "", false
}

// podOf returns the uid in the name of a pod's group, or "".
func podOf(part string) string {
	part = strings.TrimSuffix(part, ".slice")
	at := strings.LastIndex(part, "pod")
	if at < 0 {
		return ""
	}
	uid := strings.ReplaceAll(part[at+len("pod"):], "_", "-")
	if len(uid) == 32 && hexadecimal(uid) {
		return uid
	}
	digits := strings.Split(uid, "-")
	if len(digits) != 5 {
		return ""
	}
	for i, n := range []int{8, 4, 4, 4, 12} {
		if len(digits[i]) != n || !hexadecimal(digits[i]) {
			return ""
		}
	}
	return uid
}

// containerOf returns the id in the name of a container's group, or "".
func containerOf(part string) string {
	part = strings.TrimSuffix(part, ".scope")
	for _, runtime := range []string{"cri-containerd-", "crio-", "docker-"} {
		if id, ok := strings.CutPrefix(part, runtime); ok {
			part = id
			break
		}
	}
	if len(part) != 64 || !hexadecimal(part) {
		return "" // such as crio-conmon-ID, which is no container
	}
	return part
}

func hexadecimal(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

// ParseContainerID returns the id in a status's RUNTIME://ID.
func ParseContainerID(s string) string {
	_, id, ok := strings.Cut(s, "://")
	if !ok {
		return ""
	}
	return id
}
