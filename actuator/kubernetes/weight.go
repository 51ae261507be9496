package kubernetes

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// A request becomes shares, and these become a weight of cgroup v2 by two formulas at once: the
// kubelet writes the weight of the pod's group, which counts beside other pods, and the runtime
// that of the container's, which counts beside the other containers of the pod:
//
//	shares    = 1024 · cores                                 2 to 262144
//	pod       = 1 + (shares − 2) · 9999 / 262142             a straight line, rounded down
//	container = ceil(10^((l² + 125 l)/612 − 7/34))           l = log2(shares); 1024 is 100
//
// So neither is read back with the formula of the other, and what a container gets beside other
// pods is in proportion to the requests of pods, but within its pod it is not in proportion to
// requests. Older runtimes write the straight line for containers, too.
//
// Source: Kubernetes 1.37, pkg/kubelet/cm, getCPUWeight and MilliCPUToShares;
// opencontainers/cgroups 0.0.7, ConvertCPUSharesToCgroupV2Value.

const (
	leastShares, mostShares = 2, 262_144
	leastWeight, mostWeight = 1, 10_000
)

// sharesOf returns the CPU shares for a request in cores.
func sharesOf(cores float64) uint64 {
	milli := math.Round(cores * 1000)
	return uint64(min(max(math.Floor(milli*1024/1000), leastShares), mostShares))
}

// podWeight returns the weight of a pod's group as the kubelet computes it.
func podWeight(shares uint64) uint64 {
	return leastWeight + (shares-leastShares)*(mostWeight-leastWeight)/(mostShares-leastShares)
}

// containerWeight returns the weight of a container's group as the runtime computes it.
func containerWeight(shares uint64) uint64 {
	switch {
	case shares <= leastShares:
		return leastWeight
	case shares >= mostShares:
		return mostWeight
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}

// weighs reports whether the request that a node reads back may be the requested one, by any of
// the formulas by which its weight may have been written and read.
func weighs(asked float64, s *kube.ContainerStatus) bool {
	told, ok := s.Resources.Requests[trimtab.CPU]
	if !ok {
		return true
	}
	shares, back := sharesOf(asked), sharesOf(float64(told))
	if near1(back, shares) {
		return true
	}
	for _, wrote := range []func(uint64) uint64{podWeight, containerWeight} {
		for _, read := range []func(uint64) uint64{podWeight, containerWeight} {
			if near1(read(back), wrote(shares)) {
				return true
			}
		}
	}
	return false
}

// near1 reports whether two numbers differ by at most one, which may come from rounding.
func near1(a, b uint64) bool { return max(a, b)-min(a, b) <= 1 }

// noteOf explains the effect of a container's request on its node.
func noteOf(p *kube.Pod, c *kube.Container) string {
	own := float64(c.Resources.Requests[trimtab.CPU])
	note := fmt.Sprintf("its request of %s is a weight: beside other pods that of its pod counts, %d, which the kubelet writes",
		kube.Text(trimtab.CPU, own), podWeight(sharesOf(p.Requests(trimtab.CPU))))
	others := len(p.Spec.Containers) > 1 || slices.ContainsFunc(p.Spec.InitContainers, func(c kube.Container) bool { return c.RestartPolicy == "Always" })
	if others && c.Name != "" {
		note += fmt.Sprintf("; beside the other containers of its pod its own, %d, which the runtime writes by another formula", containerWeight(sharesOf(own)))
	}
	return note
}
