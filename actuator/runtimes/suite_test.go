//go:build integration

package runtimes

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// fixture is one program with what a test can do to it, made again for each test.
type fixture struct {
	Program
	// small is a room that the program can work in, and that is less than what it may take now.
	small Room
	// hang stops it from answering, and replace ends it and starts another one in its place.
	hang, replace func()
}

// suite is the contract of [Program].
func suite(t *testing.T, open func(t *testing.T) fixture) {
	for name, test := range map[string]func(t *testing.T, f fixture){
		"ItSaysWhichProcessItIs":                    saysWhichProcess,
		"AReadChangesNothing":                       readChangesNothing,
		"ARoomIsReadBack":                           roomIsReadBack,
		"NoRoomRaisesItAboveWhatItHad":              neverAboveBefore,
		"ARestoreIsExact":                           restoreIsExact,
		"ARoomThatIsTooSmallIsRefused":              tooSmallIsRefused,
		"ASettingThatMakesNoSenseIsRefused":         nonsenseIsRefused,
		"AProgramThatHangsCostsNoMoreThanTheTime":   hangIsBounded,
		"AnotherProcessInItsPlaceIsNotTheSame":      replacedIsGone,
		"FreeIsAnsweredAndChangesNoSettingByItself": freeChangesNoSetting,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func (f *fixture) read(t *testing.T) State {
	t.Helper()
	s, err := f.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if !(s.Held > 0 && s.Least >= 0 && s.Least <= s.Held) || s.Setting == "" {
		t.Fatalf("read %+v", s)
	}
	return s
}

func saysWhichProcess(t *testing.T, f fixture) {
	f.read(t) // some learn it from the first answer
	if p := f.Process(); p.alive() != nil || !strings.Contains(f.String(), strconv.Itoa(p.PID)) {
		t.Errorf("%s is %+v: %v", f.Program, p, p.alive())
	}
}

func readChangesNothing(t *testing.T, f fixture) {
	if a, b := f.read(t), f.read(t); a.Setting != b.Setting {
		t.Errorf("%s became %s", a.Setting, b.Setting)
	}
}

func (f *fixture) set(t *testing.T) (was State) {
	t.Helper()
	was = f.read(t)
	if err := f.Set(t.Context(), f.small, was); err != nil {
		t.Fatalf("set: %v", err)
	}
	return was
}

func roomIsReadBack(t *testing.T, f fixture) {
	if was := f.set(t); f.read(t).Setting == was.Setting {
		t.Errorf("it still has %s", was.Setting)
	}
}

func neverAboveBefore(t *testing.T, f fixture) {
	was := f.set(t)
	if err := f.Set(t.Context(), Room{Bytes: 1 << 45, Goal: 1 << 46, Before: f.small.Before}, was); err != nil {
		t.Fatal(err)
	}
	now := f.read(t)
	if strings.HasPrefix(was.Setting, "{") { // PostgreSQL: the text of the file may differ
		a, bad1 := parsePostgres(was.Setting)
		b, bad2 := parsePostgres(now.Setting)
		if bad1 != nil || bad2 != nil || a.Work[0] != b.Work[0] || a.Work[1] != b.Work[1] {
			t.Errorf("had %s, has %s", was.Setting, now.Setting)
		}
		return
	}
	had, bad1 := strconv.ParseUint(was.Setting, 10, 64)
	has, bad2 := strconv.ParseUint(now.Setting, 10, 64)
	if bad1 != nil || bad2 != nil || had != 0 && has > had {
		t.Errorf("had %s, has %s", was.Setting, now.Setting)
	}
}

func restoreIsExact(t *testing.T, f fixture) {
	was := f.set(t)
	for range 2 {
		if err := f.Restore(t.Context(), was.Setting); err != nil {
			t.Fatal(err)
		}
		if now := f.read(t); now.Setting != was.Setting {
			t.Errorf("had %s, has %s", was.Setting, now.Setting)
		}
	}
}

func tooSmallIsRefused(t *testing.T, f fixture) {
	was := f.read(t)
	none := Room{Bytes: -1, Goal: 1 << 20, Before: f.small.Before}
	if err := errors.Join(f.Free(t.Context(), f.small), f.Set(t.Context(), none, was)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("%v", err)
	}
	if now := f.read(t); now.Setting != was.Setting {
		t.Errorf("had %s, has %s", was.Setting, now.Setting)
	}
}

func nonsenseIsRefused(t *testing.T, f fixture) {
	was := f.read(t)
	for _, setting := range []string{"x", "-1", "1e300", "", "{}", "99999999999999999999999", `{"work":[1,2],"own":["'; DROP","x"]}`} {
		if err := f.Restore(t.Context(), setting); err == nil {
			t.Errorf("restored %q", setting)
		}
		if err := f.Set(t.Context(), f.small, State{Setting: setting}); err == nil {
			t.Errorf("set after %q", setting)
		}
	}
	if now := f.read(t); now.Setting != was.Setting {
		t.Errorf("had %s, has %s", was.Setting, now.Setting)
	}
}

func hangIsBounded(t *testing.T, f fixture) {
	was := f.read(t)
	f.hang()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, err := range map[string]error{
		"read": func() error { _, err := f.Read(ctx); return err }(), "set": f.Set(ctx, f.small, was), "restore": f.Restore(ctx, was.Setting),
	} {
		if err == nil {
			t.Errorf("%s of a program that hangs: no error", name)
		}
	}
}

func replacedIsGone(t *testing.T, f fixture) {
	was := f.read(t)
	f.replace()
	_, err := f.Read(t.Context())
	for name, err := range map[string]error{"read": err, "set": f.Set(t.Context(), f.small, was), "restore": f.Restore(t.Context(), was.Setting)} {
		if err == nil {
			t.Errorf("%s of another process: no error", name)
		}
	}
}

func freeChangesNoSetting(t *testing.T, f fixture) {
	was := f.read(t)
	if err := f.Free(t.Context(), f.small); err != nil {
		t.Error(err)
	}
	if now := f.read(t); now.Setting != was.Setting {
		t.Errorf("had %s, has %s", was.Setting, now.Setting)
	}
}

// serveGo starts it, and waits until it listens.
func serveGo(t *testing.T, socket string) *exec.Cmd {
	t.Helper()
	_ = os.Remove(socket)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRIMTAB_TEST_MEMLIMIT="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 2000 {
		if c, err := net.Dial("unix", socket); err == nil { // the file is there before anybody listens
			_ = c.Close()
			return cmd
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it does not listen")
	return nil
}
