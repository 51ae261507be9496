package collector

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

func TestWhatIsKnownOfASenderIsAddedOnceItIsKnown(t *testing.T) {
	now, asked, knows := time.Unix(0, 0), 0, false
	n := &namer{now: func() time.Time { return now }, of: func(attrs []trimtab.Attr) ([]trimtab.Attr, bool) {
		asked++
		if len(attrs) != 1 || attrs[0].Key != "k8s.pod.uid" || !knows {
			return nil, false
		}
		return []trimtab.Attr{{Key: "k8s.deployment.name", Value: "checkout"}}, true
	}}
	r := NewResource([]trimtab.Attr{{Key: "k8s.pod.uid", Value: "u"}})
	first, second := n.name(r), n.name(r)
	if first != r || second != r || asked != 1 {
		t.Errorf("asked %d times within the same second, or something was added", asked)
	}
	knows, now = true, now.Add(2*askedAgain)
	for range 3 {
		if got := codec.UnpackResource(n.name(r).Packed()); len(got) != 2 || got[0].Value != "checkout" {
			t.Errorf("attributes %v", got)
		}
		now = now.Add(time.Hour)
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2: it is settled", asked)
	}
	for range 3 * maxNamed {
		n.name(NewResource(nil))
	}
	if len(n.known) > maxNamed {
		t.Errorf("%d are remembered", len(n.known))
	}
}
