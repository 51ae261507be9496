package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab/internal/demo/service"
)

// TestMain lets the test binary be the services too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "demo-service" {
		os.Exit(beService(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "demo-parent" {
		os.Exit(beParent())
	}
	os.Exit(m.Run())
}

func beService(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// Tests mark their services by a first word that is not a flag of ours.
	if len(args) > 0 && strings.HasPrefix(args[0], "--mark-") {
		args = args[1:]
	}
	cfg, err := service.ParseArgs(args)
	if err == nil {
		err = service.Run(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func self(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, "demo-service"}
}
