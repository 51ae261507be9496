package leak

import "testing"

func TestAGoroutineThatIsLeftIsFoundAndOneThatEndsIsWaitedFor(t *testing.T) {
	end := make(chan struct{})
	go func() { <-end }()
	if find(0) == nil {
		t.Error("one that is left is not found")
	}
	close(end)
	None(t)
}
