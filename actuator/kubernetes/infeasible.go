package kubernetes

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab/internal/kube"
)

// barredFor is how long Guaranteed pods of a node are not grown there, once its kubelet
// called the growth of one infeasible.
const barredFor = time.Hour

// policies is on which nodes Guaranteed pods cannot grow in place. A node's CPU manager
// and memory manager are in no object of the API: a kubelet tells of them when it is first
// asked, and of one that it told of the others are not asked. The nil value knows none.
type policies struct {
	mu sync.Mutex
	of map[onNode]told
}

type onNode struct{ node, resource string }

type told struct {
	until time.Time
	words string
}

// learn takes in what a kubelet says of a resize that is infeasible. A pod that is larger
// than the node tells nothing of others.
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
	b.of[onNode{p.Spec.NodeName, resource}] = told{now.Add(barredFor), message}
}

// bars says why a pod cannot grow where it is; "": nothing is known.
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
