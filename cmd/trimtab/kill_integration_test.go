//go:build integration

package main

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestADemoListensOnLoopbackOnlyAndLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	p.launch("demo", "--headless", "--for", "40s", "--knob", "process", "--report", filepath.Join(p.dir, "report.json"), "--web.listen-address", p.web)
	p.becomesReady()
	p.onlyLoopback(1)
	p.stopDemo()
}

// stopDemo ends a demo early, which is no error.
func (p *program) stopDemo() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.until("the end of every process", p.noneLeft)
}
