package kubernetes

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// excludedFor is how long Guaranteed pods of a node are not raised after its kubelet called such a
// resize infeasible.
const excludedFor = time.Hour

// policies has the nodes on which Guaranteed pods cannot grow in place. No API object shows a
// node's CPU manager and memory manager: a kubelet reports them when it first refuses, and then its
// other pods are not tried. The nil value knows no node.
type policies struct {
	mu sync.Mutex
	of map[onNode]told
}

type onNode struct{ node, resource string }

type told struct {
	until time.Time
	words string
}

// concerns reports whether a kubelet's reason may be about a resource: not if it names another one.
// CPU and memory of a pod are resized together or not at all.
func concerns(message, resource string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, resource) || !strings.Contains(message, trimtab.CPU) && !strings.Contains(message, trimtab.Memory)
}

// learn records a kubelet's reason for an infeasible resize. A pod that is larger than the node
// proves nothing for others.
func (b *policies) learn(now time.Time, p *kube.Pod, resource, message string) {
	if b == nil || p.Status.QOSClass != guaranteed || p.Spec.NodeName == "" || strings.Contains(message, "capacity") {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, t := range b.of {
		if now.After(t.until) {
			delete(b.of, at)
		}
	}
	if b.of == nil {
		b.of = map[onNode]told{}
	}
	b.of[onNode{p.Spec.NodeName, resource}] = told{now.Add(excludedFor), message}
}

// bars returns why a pod cannot grow on its node; "": no reason is known.
func (b *policies) bars(now time.Time, p *kube.Pod, resource string) string {
	if b == nil || p.Status.QOSClass != guaranteed {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.of[onNode{p.Spec.NodeName, resource}]
	if !ok || now.After(t.until) {
		return ""
	}
	return fmt.Sprintf("node %s grows no Guaranteed pod: %s", p.Spec.NodeName, t.words)
}
