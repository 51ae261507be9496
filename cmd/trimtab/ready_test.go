package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// unready returns the reason that /-/ready gives for a part, "" when it is
// ready.
func (p *program) unready(part string) (reason string, err error) {
	code, body, err := p.get("/-/ready")
	if err != nil || code != 200 && code != 503 {
		return "", fmt.Errorf("%d %s: %w", code, body, err)
	}
	for line := range strings.Lines(body) {
		if why, ok := strings.CutPrefix(line, part+": "); ok {
			return strings.TrimSpace(why), nil
		}
	}
	return "", nil
}

func TestAFullDiskIsNotReadyWithTheReasonAndReadyAfterARestartWithRoom(t *testing.T) {
	t.Parallel()
	p := prepare(t, anyQuotas(t), "")
	mount(t, p.storage(), "size=16m")
	p.start()
	p.serve()
	p.until("both limits moved", p.moved)
	remove := fill(t, p.storage())
	began := time.Now()
	for _, part := range []string{"bus", "planner", "actuator"} {
		p.until(part+" is not ready, with the reason", func() error {
			why, err := p.unready(part)
			if err != nil || !strings.Contains(why, "no space left on device") || !strings.Contains(why, "disk") {
				return fmt.Errorf("%s: %q: %w", part, why, err)
			}
			return nil
		})
	}
	_, body, err := p.get("/-/ready")
	t.Logf("not ready %v after the disk was full, with rounds of 1 s: %v\n%s", time.Since(began), err, body)
	remove()
	// nats-server writes to no stream again that once failed.
	p.stop()
	p.start()
}
